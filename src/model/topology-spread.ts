// SPDX-License-Identifier: Apache-2.0
// Topology spread constraints: how evenly pods must be distributed over topology domains.

import type { Labels } from './labels.ts';
import { accepted, type Parsed } from './parsed.ts';
import { type LabelSelectorSource, parseLabelSelector, type Selector } from './selector.ts';

export interface SpreadConstraint {
  readonly topologyKey: string;
  /** Maximum difference between the matching pods of a domain and those of the domain with the fewest. */
  readonly maxSkew: number;
  /** With fewer domains than this, the smallest count is taken as 0. */
  readonly minDomains: number;
  readonly selector: Selector;
  /** Only nodes that match the pod's node selector and affinity count as domains. */
  readonly honorsAffinity: boolean;
  /** Only nodes whose taints the pod tolerates count as domains. */
  readonly honorsTaints: boolean;
}

/** A TopologySpreadConstraint of the Kubernetes API. */
export interface SpreadConstraintSource {
  readonly maxSkew?: number | null;
  readonly topologyKey?: string | null;
  readonly whenUnsatisfiable?: string | null;
  readonly labelSelector?: LabelSelectorSource | null;
  readonly minDomains?: number | null;
  readonly nodeAffinityPolicy?: string | null;
  readonly nodeTaintsPolicy?: string | null;
  readonly matchLabelKeys?: readonly string[] | null;
}

/** Whether it can prevent scheduling (DoNotSchedule), rather than only influence scoring. */
export function isHardConstraint(source: SpreadConstraintSource): boolean {
  return source.whenUnsatisfiable === 'DoNotSchedule';
}

export function parseSpreadConstraint(
  source: SpreadConstraintSource,
  ownLabels: Labels,
): Parsed<SpreadConstraint> {
  const selector = parseLabelSelector(source.labelSelector);
  if (!selector.ok) return selector;
  return accepted({
    topologyKey: source.topologyKey ?? '',
    maxSkew: source.maxSkew ?? 0,
    minDomains: source.minDomains ?? 1,
    selector: withOwnLabels(selector.value, source.matchLabelKeys ?? [], ownLabels),
    honorsAffinity: (source.nodeAffinityPolicy ?? 'Honor') === 'Honor',
    honorsTaints: (source.nodeTaintsPolicy ?? 'Ignore') === 'Honor',
  });
}

function withOwnLabels(selector: Selector, keys: readonly string[], labels: Labels): Selector {
  if (selector.selects === 'nothing') return selector;
  const own = keys
    .filter((key) => Object.hasOwn(labels, key))
    .map((key) => ({ key, operator: 'In' as const, values: [labels[key] ?? ''] }));
  return own.length === 0
    ? selector
    : { selects: 'matching', requirements: [...own, ...selector.requirements] };
}
