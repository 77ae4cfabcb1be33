// SPDX-License-Identifier: Apache-2.0
// Pod affinity and anti-affinity: selects other pods by labels and namespaces within one topology domain (the
// nodes that share a label value).

import type { Labels } from './labels.ts';
import { accepted, type Parsed } from './parsed.ts';
import type { Requirement } from './requirement.ts';
import { type LabelSelectorSource, parseLabelSelector, type Selector } from './selector.ts';

export interface PodAffinityTerm {
  readonly selector: Selector;
  /** Namespaces by name. Selected in addition to those of `namespaceSelector`. */
  readonly namespaces: readonly string[];
  readonly namespaceSelector: Selector;
  readonly topologyKey: string;
}

/** A PodAffinityTerm object of the Kubernetes API. */
export interface PodAffinityTermSource {
  readonly labelSelector?: LabelSelectorSource | null;
  readonly namespaces?: readonly string[] | null;
  readonly namespaceSelector?: LabelSelectorSource | null;
  readonly topologyKey?: string | null;
  readonly matchLabelKeys?: readonly string[] | null;
  readonly mismatchLabelKeys?: readonly string[] | null;
}

/**
 * The pod that has the term. Its namespace is the default; its labels resolve matchLabelKeys and
 * mismatchLabelKeys.
 */
export interface TermOwner {
  readonly namespace: string;
  readonly labels: Labels;
}

export function parseAffinityTerm(
  source: PodAffinityTermSource,
  owner: TermOwner,
): Parsed<PodAffinityTerm> {
  const selector = parseLabelSelector(source.labelSelector);
  if (!selector.ok) return selector;
  const namespaceSelector = parseLabelSelector(source.namespaceSelector);
  if (!namespaceSelector.ok) return namespaceSelector;
  const named = source.namespaces ?? [];
  const isOwn = named.length === 0 && (source.namespaceSelector ?? undefined) === undefined;
  const matched = withOwnLabels(selector.value, 'In', ownLabels(source.matchLabelKeys, owner));
  return accepted({
    selector: withOwnLabels(matched, 'NotIn', ownLabels(source.mismatchLabelKeys, owner)),
    namespaces: isOwn ? [owner.namespace] : named,
    namespaceSelector: namespaceSelector.value,
    topologyKey: source.topologyKey ?? '',
  });
}

function ownLabels(
  keys: readonly string[] | null | undefined,
  owner: TermOwner,
): readonly (readonly [string, string])[] {
  return (keys ?? []).flatMap((key) => {
    const value = Object.hasOwn(owner.labels, key) ? owner.labels[key] : undefined;
    return value === undefined ? [] : [[key, value] as const];
  });
}

// The API server adds these to the selector when a pod is created. Add them only where they are missing
// (templates, pods that were never admitted): the pod's labels may have changed since admission.
function withOwnLabels(
  selector: Selector,
  operator: 'In' | 'NotIn',
  pairs: readonly (readonly [string, string])[],
): Selector {
  if (selector.selects === 'nothing' || pairs.length === 0) return selector;
  const known = new Set(
    selector.requirements.filter((one) => one.operator === operator).map((one) => one.key),
  );
  const added: readonly Requirement[] = pairs
    .filter(([key]) => !known.has(key))
    .map(([key, value]) => ({ key, operator, values: [value] }));
  return { selects: 'matching', requirements: [...selector.requirements, ...added] };
}
