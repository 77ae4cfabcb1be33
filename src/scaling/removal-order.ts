// SPDX-License-Identifier: Apache-2.0
// In which order machines are removed, and what those wait for that new ones replace.

import type { Node } from '../model/node.ts';
import { isReady, isStaying } from './expected-nodes.ts';
import { isPlaceholder } from './headroom.ts';
import type { ScalingInput, ScalingMachine } from './input.ts';
import type { ScalingMemory } from './memory.ts';
import type { Candidate, Refused } from './removal-candidate.ts';
import type { ScaleUp } from './scale-up.ts';

/**
 * Empty machines first. Then those that new ones replace, in the order that was simulated. Then those that were unneeded before,
 * so that their time is not lost. Then the lowest utilization, the fewest pods, the youngest.
 */
export function sortForRemoval(
  candidates: readonly Candidate[],
  { unneededSince, replacement }: ScalingMemory,
): readonly Candidate[] {
  const replacedIndex = ({ id }: ScalingMachine): number => {
    const index = replacement?.replaced.indexOf(id) ?? -1;
    return index < 0 ? Number.MAX_SAFE_INTEGER : index;
  };
  const keys = ({ machine, utilization }: Candidate): readonly number[] => [
    utilization.pods === 0 ? 0 : 1,
    replacedIndex(machine),
    unneededSince[machine.id] === undefined ? 1 : 0,
    utilization.value,
    utilization.pods,
    -machine.requestedAt,
  ];
  return candidates
    .map((candidate) => ({ candidate, keys: keys(candidate) }))
    .toSorted(
      (left, right) =>
        compareKeys(left.keys, right.keys) ||
        (left.candidate.machine.id < right.candidate.machine.id ? -1 : 1),
    )
    .map(({ candidate }) => candidate);
}

function compareKeys(left: readonly number[], right: readonly number[]): number {
  for (const [i, value] of left.entries()) {
    const difference = value - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * What the next drains of a replacement wait for: pods are scheduled as simulated only when all new machines are there, and when
 * the pods of the last drains run again.
 */
export function findReplacementWait(
  { machines, memory: { replacement } }: ScalingInput,
  { placements }: ScaleUp,
): string | undefined {
  if (replacement === undefined) return undefined;
  const added = machines.filter(({ id }) => replacement.added.includes(id));
  if (!added.every(isReady)) return 'the other new machines';
  const replaced = machines.filter(({ id }) => replacement.replaced.includes(id));
  if (!replaced.every(isStaying)) return 'the removals before it';
  return placements.some(({ pod }) => !isPlaceholder(pod))
    ? 'pods that are being scheduled'
    : undefined;
}

export function waitingRefusal({ name }: Node, waitsFor: string): Refused {
  return {
    code: 'NodeRemovalWaits',
    reason: `node ${name} is replaced by new machines, and waits for ${waitsFor}`,
  };
}
