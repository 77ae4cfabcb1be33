// SPDX-License-Identifier: Apache-2.0
// What the next decision must remember of the earlier ones. Plain data, which the autoscaler stores. A decision without it
// is correct, but later: the times of unneeded nodes start again.

import type { MachineId } from '../model/machine.ts';

export interface ScalingMemory {
  /** Since when a machine has been unneeded, by machine id. */
  readonly unneededSince: Readonly<Record<string, number>>;
  /** Uids of the pods that a machine was requested for, by machine id. */
  readonly assignments: Readonly<Record<string, readonly string[]>>;
  /** The same for machines of which it is not known yet whether they helped; they keep all pods. */
  readonly trials?: Readonly<Record<string, readonly string[]>>;
  /** By pool, what became of its last machines, if none of them helped a pod. */
  readonly streaks?: Readonly<Record<string, readonly string[]>>;
}

export const EMPTY_MEMORY: ScalingMemory = { unneededSince: {}, assignments: {} };

/** One requested machine of a create step. */
export interface RequestedMachine {
  readonly id: MachineId;
  /** Uids of the pods that the step planned for it. */
  readonly pods: readonly string[];
}

/** Call it when a create step was carried out: the pods of the step are then placed on its machines first. */
export function rememberRequested(
  memory: ScalingMemory,
  machines: readonly RequestedMachine[],
): ScalingMemory {
  const added = Object.fromEntries(machines.map(({ id, pods }) => [id, pods]));
  return {
    ...memory,
    assignments: { ...memory.assignments, ...added },
    trials: { ...memory.trials, ...added },
  };
}
