// SPDX-License-Identifier: Apache-2.0
// What the next decision must remember of the earlier ones. Plain data, which the autoscaler stores. A decision without it
// is correct, but later: the times of unneeded nodes start again.

import type { MachineId } from '../model/machine.ts';
import type { FailedRemovals, ReplacementInProgress } from '../model/pool.ts';

export interface ScalingMemory {
  /** Since when a machine has been unneeded, by machine id. */
  readonly unneededSince: Readonly<Record<string, number>>;
  /** Uids of the pods that a machine was requested for, by machine id. */
  readonly assignments: Readonly<Record<string, readonly string[]>>;
  /** The same for machines of which it is not known yet whether they helped; they keep all pods. */
  readonly trials?: Readonly<Record<string, readonly string[]>>;
  /** By pool, what became of its last machines, if none of them helped a pod. */
  readonly streaks?: Readonly<Record<string, readonly string[]>>;
  readonly replacement?: ReplacementInProgress | undefined;
  /** When a replacement may be planned next. Not stored: a restart may plan it earlier. */
  readonly replacementAt?: number | undefined;
  /** How many failed since the last one that succeeded. Not stored either. */
  readonly replacementFailures?: number | undefined;
  /** How many pods there were when it was planned. Not stored either. */
  readonly replacementPods?: number | undefined;
  /** How many searches in a row have found none. Not stored either. */
  readonly replacementSearches?: number | undefined;
  /** How many machines it was to replace. Not stored either. */
  readonly replacementSize?: number | undefined;
  /** Removals whose pods may still become pending. Not stored either. */
  readonly removals?: readonly RecentRemoval[] | undefined;
  /** By workload: the uid of the controller of its pods. */
  readonly failedRemovals?: Readonly<Record<string, FailedRemovals>> | undefined;
}

/** A removal whose pods are not known to be running again. */
export interface RecentRemoval {
  readonly machine: MachineId;
  /** Uids of the pods to move. */
  readonly pods: readonly string[];
  /** Of the pods to move, without those that had pending pods before: how many pods they had. */
  readonly workloads: Readonly<Record<string, number>>;
  /** Pods that become pending later do not count. */
  readonly until: number;
}

export const EMPTY_MEMORY: ScalingMemory = { unneededSince: {}, assignments: {} };

/** One requested machine of a create step. */
export interface RequestedMachine {
  readonly id: MachineId;
  /** Uids of the pods that the step planned for it. */
  readonly pods: readonly string[];
}

/**
 * Call it when a create step was carried out: the pods of the step are then placed on its machines first, and the machines
 * that it replaces are removed.
 */
export function rememberRequested(
  memory: ScalingMemory,
  machines: readonly RequestedMachine[],
  replacement?: { readonly replaces: readonly MachineId[]; readonly at: number },
): ScalingMemory {
  const added = Object.fromEntries(machines.map(({ id, pods }) => [id, pods]));
  const ids = machines.map(({ id }) => id);
  return {
    ...memory,
    assignments: { ...memory.assignments, ...added },
    trials: { ...memory.trials, ...added },
    ...(replacement !== undefined && {
      replacement: {
        at: replacement.at,
        replaced: replacement.replaces,
        added: [...(memory.replacement?.added ?? []), ...ids],
      },
    }),
  };
}
