// SPDX-License-Identifier: Apache-2.0
// Whom a pod wants beside it, or does not: other pods by their labels and namespaces, within one domain of a
// topology (the nodes that carry the same value of a label).

import type { Labels } from './labels.ts';
import { accepted, type Parsed } from './parsed.ts';
import type { Requirement } from './requirement.ts';
import { type LabelSelectorSource, parseLabelSelector, type Selector } from './selector.ts';

export interface PodAffinityTerm {
  readonly selector: Selector;
  /** By name; pods in these namespaces are meant whatever the selector of namespaces says. */
  readonly namespaces: readonly string[];
  readonly namespaceSelector: Selector;
  readonly topologyKey: string;
}

/** A PodAffinityTerm as it comes from the Kubernetes API. */
export interface PodAffinityTermSource {
  readonly labelSelector?: LabelSelectorSource | null;
  readonly namespaces?: readonly string[] | null;
  readonly namespaceSelector?: LabelSelectorSource | null;
  readonly topologyKey?: string | null;
  readonly matchLabelKeys?: readonly string[] | null;
  readonly mismatchLabelKeys?: readonly string[] | null;
}

/** Who has the term: its namespace is meant when the term names none, its labels fill in the keys. */
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

// The API server writes these into the selector when a pod is created. They are added here only where they
// are missing (templates, pods that were never admitted): a label may have changed since the admission.
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
