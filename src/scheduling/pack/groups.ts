// SPDX-License-Identifier: Apache-2.0
// Pods that ask the same are one group: what is found out for one holds for all of them.

import { type Pod, podKey } from '../../model/pod.ts';
import { type Candidate, candidateKey, newCandidate, rulesKey } from '../state/candidate.ts';
import type { World } from '../state/world.ts';
import { type Weights, weightOf } from './weights.ts';

export interface PodGroup {
  readonly candidate: Candidate;
  /** Equal for groups that differ in requests only. */
  readonly rules: number;
  readonly priority: number;
  /** By name, so that the order in which they came does not matter. */
  readonly pods: readonly Pod[];
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

/** In the order in which they are placed: what is hard to place first, what is large before what is small. */
export function groupPods(
  pods: readonly Pod[],
  world: World,
  weights: Weights,
): readonly PodGroup[] {
  const byKey = new Map<string, { readonly rules: string; readonly pods: Pod[] }>();
  for (const pod of pods) {
    const rules = rulesKey(pod);
    const key = `${pod.priority} ${candidateKey(pod, rules)}`;
    const known = byKey.get(key);
    if (known === undefined) byKey.set(key, { rules, pods: [pod] });
    else known.pods.push(pod);
  }
  const numbers = new Map<string, number>();
  const groups = [...byKey].map(([key, group]) => {
    const rules = numbers.get(group.rules) ?? numbers.size;
    numbers.set(group.rules, rules);
    return { key, group: newGroup(group.pods.sort(byName), rules, world) };
  });
  const ranked = groups.map((one) => ({ ...one, rank: rank(one.group, weights) }));
  ranked.sort((a, b) => compareRanks(a.rank, b.rank) || (a.key < b.key ? -1 : 1));
  return ranked.map((one) => one.group);
}

function newGroup(pods: readonly Pod[], rules: number, world: World): PodGroup {
  const [first] = pods;
  if (first === undefined) throw new RangeError('a group has at least one pod');
  const { cpuMilli, memoryBytes } = first.requests;
  const candidate = newCandidate(first, world);
  return { candidate, rules, priority: first.priority, pods, cpuMilli, memoryBytes };
}

function byName(left: Pod, right: Pod): number {
  const a = podKey(left);
  const b = podKey(right);
  if (a === b) return left.uid < right.uid ? -1 : 1;
  return a < b ? -1 : 1;
}

type Rank = readonly number[];

function rank(group: PodGroup, weights: Weights): Rank {
  return [-group.priority, difficulty(group.candidate), -weightOf(group, weights)];
}

// Pods that refuse others open machines anyway: first, so that the rest can fill those. Then those tied to
// domains; whoever may go anywhere fills the gaps.
function difficulty({ pod, refuses, wants, spread }: Candidate): number {
  if (refuses.length > 0) return 0;
  if (pod.hostPorts.length > 0 || pod.volumes.length > 0) return 1;
  if (wants.length > 0) return 2;
  return spread.length > 0 ? 3 : 4;
}

function compareRanks(left: Rank, right: Rank): number {
  for (const [i, value] of left.entries()) {
    const difference = value - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
