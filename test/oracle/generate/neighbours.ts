// SPDX-License-Identifier: Apache-2.0
// What a pod says about other pods: affinity, anti-affinity, spread over domains.

import type {
  Cluster,
  LabelSelector,
  Node,
  Pod,
  PodAffinityTerm,
  SpreadConstraint,
} from '../objects.ts';
import type { Random } from '../random.ts';
import { addNodeAffinity, addNodeSelector } from './rules.ts';
import {
  HOSTNAME,
  NAMESPACES,
  namespaceSelector,
  podSelector,
  RACK,
  TOPOLOGY_KEYS,
  ZONE,
} from './words.ts';

// A key is in the selector or among the label keys; the API server refuses both.
function mentions(selector: LabelSelector | undefined, key: string): boolean {
  if (selector?.matchLabels?.[key] !== undefined) return true;
  return (selector?.matchExpressions ?? []).some((one) => one.key === key);
}

// As the API server leaves it: the keys stay and are merged into the selector as well.
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
  // The first of a series: affinity to pods like itself.
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

/** What a pod would rather have decides nothing. */
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

// Merged by the API server since 1.34, by the plugin for pods that are older.
function addLabelKeys(random: Random, constraint: SpreadConstraint, pod: Pod): void {
  const key = random.pick(['rev', 'tier']);
  const value = pod.metadata.labels?.[key];
  const asked = constraint.labelSelector?.matchExpressions ?? [];
  if (mentions(constraint.labelSelector, key)) return;
  constraint.matchLabelKeys = [key];
  if (random.chance(0.5) && value !== undefined && constraint.labelSelector !== undefined)
    constraint.labelSelector.matchExpressions = [
      ...asked,
      { key, operator: 'In', values: [value] },
    ];
}

interface Wish {
  readonly random: Random;
  readonly cluster: Cluster;
  readonly pod: Pod;
}

// The emptiest node sets the minimum; whether it counts is what the policy says.
function closeEmptiest({ nodes, pods }: Cluster): void {
  const load = Map.groupBy(pods, ({ spec }) => spec.nodeName);
  const loadOf = ({ metadata }: Node) => load.get(metadata.name)?.length ?? 0;
  const [emptiest] = nodes.toSorted((one, other) => loadOf(one) - loadOf(other));
  if (emptiest !== undefined)
    emptiest.spec.taints ??= [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }];
}

/** One constraint and one refinement of it: whether other nodes count shows only when the pod keeps away from some. */
export function addSpreadPolicy({ random, cluster, pod }: Wish): void {
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
