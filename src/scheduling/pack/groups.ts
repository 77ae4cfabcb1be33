// SPDX-License-Identifier: Apache-2.0
// Groups pods with equal requirements, so that each check runs once per group.

import type { Pod } from '../../model/pod.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import { newPendingPod, type PendingPod, pendingPodKey, rulesKey } from '../state/pending-pod.ts';
import { type Weights, weightOf } from './weights.ts';

export interface PodGroup {
  readonly pendingPod: PendingPod;
  /** Equal for groups that differ in requests only. */
  readonly rules: number;
  readonly priority: number;
  /** Sorted by name, so that the result does not depend on the input order. */
  readonly pods: readonly Pod[];
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

/** Sorted in placement order: hard to place first, large before small. */
export function groupPods(
  pods: readonly Pod[],
  cluster: ClusterState,
  weights: Weights,
): readonly PodGroup[] {
  const byKey = new Map<string, { readonly rules: string; readonly pods: Pod[] }>();
  for (const pod of pods) {
    const rules = rulesKey(pod);
    const key = `${pod.priority} ${pendingPodKey(pod, rules)}`;
    const known = byKey.get(key);
    if (known === undefined) byKey.set(key, { rules, pods: [pod] });
    else known.pods.push(pod);
  }
  const numbers = new Map<string, number>();
  const groups = [...byKey].map(([key, group]) => {
    const rules = numbers.get(group.rules) ?? numbers.size;
    numbers.set(group.rules, rules);
    return { key, group: newGroup(group.pods.sort(compareNames), rules, cluster) };
  });
  const ranked = groups.map((one) => ({ ...one, rank: rankOf(one.group, weights) }));
  ranked.sort((a, b) => compareRanks(a.rank, b.rank) || (a.key < b.key ? -1 : 1));
  return ranked.map((one) => one.group);
}

function newGroup(pods: readonly Pod[], rules: number, cluster: ClusterState): PodGroup {
  const [first] = pods;
  if (first === undefined) throw new RangeError('a pod group must have at least one pod');
  const { cpuMilli, memoryBytes } = first.requests;
  const pendingPod = newPendingPod(first, cluster);
  return { pendingPod, rules, priority: first.priority, pods, cpuMilli, memoryBytes };
}

// Pods of a group have the same namespace.
function compareNames(left: Pod, right: Pod): number {
  if (left.name === right.name) return left.uid < right.uid ? -1 : 1;
  return left.name < right.name ? -1 : 1;
}

type Rank = readonly number[];

function rankOf(group: PodGroup, weights: Weights): Rank {
  return [-group.priority, difficulty(group.pendingPod), -weightOf(group, weights)];
}

// Pods with anti-affinity open machines anyway, so they come first and the others fill those machines. Pods
// tied to a domain are next. Pods without constraints fill the gaps.
function difficulty({
  pod,
  antiAffinityCounters,
  affinityCounters,
  spreadChecks,
}: PendingPod): number {
  if (antiAffinityCounters.length > 0) return 0;
  if (pod.hostPorts.length > 0 || pod.volumes.length > 0) return 1;
  if (affinityCounters.length > 0) return 2;
  return spreadChecks.length > 0 ? 3 : 4;
}

function compareRanks(left: Rank, right: Rank): number {
  for (const [i, value] of left.entries()) {
    const difference = value - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
