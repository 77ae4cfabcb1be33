// SPDX-License-Identifier: Apache-2.0
// Generates rules about other pods: affinity, anti-affinity, topology spread.

import type {
  Cluster,
  LabelSelector,
  Node,
  Pod,
  PodAffinityTerm,
  SpreadConstraint,
} from '../objects.ts';
import type { Random } from '../random.ts';
import {
  HOSTNAME,
  NAMESPACES,
  namespaceSelector,
  podSelector,
  RACK,
  TOPOLOGY_KEYS,
  ZONE,
} from './labels.ts';
import { addNodeAffinity, addNodeSelector } from './node-rules.ts';

// A key is either in the selector or among the label keys; the API server rejects both.
function mentions(selector: LabelSelector | undefined, key: string): boolean {
  if (selector?.matchLabels?.[key] !== undefined) return true;
  return (selector?.matchExpressions ?? []).some((one) => one.key === key);
}

// As after admission: the keys are kept and also merged into the selector.
function mergeLabelKeys(term: PodAffinityTerm, pod: Pod, random: Random): void {
  const key = random.pick(['rev', 'tier']);
  const value = pod.metadata.labels?.[key];
  if (mentions(term.labelSelector, key)) return;
  const field = random.chance(0.6) ? 'matchLabelKeys' : 'mismatchLabelKeys';
  term[field] = [key];
  if (value === undefined) return;
  const operator = field === 'matchLabelKeys' ? 'In' : 'NotIn';
  const selector: LabelSelector = { ...term.labelSelector };
  selector.matchExpressions = [
    ...(selector.matchExpressions ?? []),
    { key, operator, values: [value] },
  ];
  term.labelSelector = selector;
}

export function affinityTerm(random: Random, pod: Pod): PodAffinityTerm {
  const term: PodAffinityTerm = {
    labelSelector: podSelector(random),
    topologyKey: random.pick(TOPOLOGY_KEYS),
  };
  if (random.chance(0.3)) term.namespaces = random.some(NAMESPACES, 0.4);
  if (random.chance(0.3)) term.namespaceSelector = namespaceSelector(random);
  if (random.chance(0.03)) delete term.labelSelector;
  else if (random.chance(0.35)) mergeLabelKeys(term, pod, random);
  return term;
}

export function addAffinity(
  random: Random,
  pod: Pod,
  kind: 'podAffinity' | 'podAntiAffinity',
): void {
  const terms = random.times(random.chance(0.7) ? 1 : 2, () => affinityTerm(random, pod));
  // The first pod of a series: affinity to pods with its own labels.
  if (kind === 'podAffinity' && random.chance(0.15))
    terms[0] = {
      labelSelector: { matchLabels: { ...pod.metadata.labels } },
      topologyKey: random.pick(TOPOLOGY_KEYS),
    };
  pod.spec.affinity = {
    ...pod.spec.affinity,
    [kind]: { requiredDuringSchedulingIgnoredDuringExecution: terms },
  };
}

/** Preferences do not affect the result. */
export function addPreference(random: Random, pod: Pod): void {
  const kind = random.pick(['podAffinity', 'podAntiAffinity'] as const);
  pod.spec.affinity = {
    ...pod.spec.affinity,
    [kind]: {
      ...pod.spec.affinity?.[kind],
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 10, podAffinityTerm: affinityTerm(random, pod) },
      ],
    },
  };
}

function spreadConstraint(random: Random, topologyKey: string): SpreadConstraint {
  const made: SpreadConstraint = {
    maxSkew: random.pick([1, 1, 1, 2]),
    topologyKey,
    whenUnsatisfiable: random.chance(0.93) ? 'DoNotSchedule' : 'ScheduleAnyway',
    labelSelector: podSelector(random),
  };
  if (random.chance(0.03)) delete made.labelSelector;
  if (random.chance(0.45) && made.whenUnsatisfiable === 'DoNotSchedule')
    made.minDomains = random.pick([2, 3, 4, 4, 8]);
  if (random.chance(0.4))
    made.nodeAffinityPolicy = random.pick(['Ignore', 'Ignore', 'Ignore', 'Honor']);
  if (random.chance(0.55))
    made.nodeTaintsPolicy = random.pick(['Honor', 'Honor', 'Honor', 'Ignore']);
  return made;
}

// Merged by the API server since 1.34, and by the plugin for older pods.
function addLabelKeys(random: Random, constraint: SpreadConstraint, pod: Pod): void {
  const key = random.pick(['rev', 'tier']);
  const value = pod.metadata.labels?.[key];
  const expressions = constraint.labelSelector?.matchExpressions ?? [];
  if (mentions(constraint.labelSelector, key)) return;
  constraint.matchLabelKeys = [key];
  if (random.chance(0.5) && value !== undefined && constraint.labelSelector !== undefined)
    constraint.labelSelector.matchExpressions = [
      ...expressions,
      { key, operator: 'In', values: [value] },
    ];
}

interface PodContext {
  readonly random: Random;
  readonly cluster: Cluster;
  readonly pod: Pod;
}

// The node with the fewest pods sets the minimum; the policy decides whether it counts.
function closeEmptiest({ nodes, pods }: Cluster): void {
  const load = Map.groupBy(pods, ({ spec }) => spec.nodeName);
  const loadOf = ({ metadata }: Node) => load.get(metadata.name)?.length ?? 0;
  const [emptiest] = nodes.toSorted((one, other) => loadOf(one) - loadOf(other));
  if (emptiest !== undefined)
    emptiest.spec.taints ??= [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }];
}

/** One constraint with one policy. The policy matters only if the pod excludes some nodes. */
export function addSpreadPolicy({ random, cluster, pod }: PodContext): void {
  const made: SpreadConstraint = {
    maxSkew: 1,
    topologyKey: random.pick([ZONE, RACK, HOSTNAME]),
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: { app: 'web' } },
  };
  const policy = random.pick(['minDomains', 'taints', 'taints', 'affinity', 'affinity']);
  if (policy === 'minDomains') made.minDomains = random.pick([3, 4, 4, 5, 12]);
  else if (policy === 'taints') {
    made.nodeTaintsPolicy = 'Honor';
    closeEmptiest(cluster);
  } else {
    made.nodeAffinityPolicy = 'Ignore';
    random.pick([addNodeSelector, addNodeSelector, addNodeAffinity])(random, pod);
  }
  pod.spec.topologySpreadConstraints = [made];
}

export function addSpread(random: Random, pod: Pod): void {
  const keys = random.some([ZONE, HOSTNAME, RACK], 0.45);
  pod.spec.topologySpreadConstraints = keys.map((key) => {
    const made = spreadConstraint(random, key);
    if (random.chance(0.75)) addLabelKeys(random, made, pod);
    return made;
  });
}
