// SPDX-License-Identifier: Apache-2.0
// What the engine stores about a pool: facts that must survive a restart. The pool's settings are read from the
// config file at each start and are never stored.
import type { MachineId } from './machine.ts';

/** A pool whose new machines keep failing backs off exponentially and reports the reason. */
export interface PoolBackoff {
  readonly failures: number;
  readonly since: number;
  /** Wall clock. No machine is created for the pool before. */
  readonly until: number;
  /** Error code and message of the last failure. */
  readonly code: string;
  readonly message: string;
}

/** Allocatable resources of joined nodes, by machine size. Corrects the template node that schedulers see. */
export interface LearnedAllocatable {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly ephemeralStorageBytes: number;
  readonly pods: number;
  readonly learnedAt: number;
}

/** Machines that seem lost and are not deleted, because they are too many at once. */
export interface LostMachines {
  readonly since: number;
  readonly machines: readonly MachineId[];
}

/** The autoscaler requests no machine of the pool: its last machines did not help. */
export interface PoolPause {
  readonly since: number;
  /** Wall clock. */
  readonly until: number;
  readonly reason: string;
}

/** Several machines that fewer new ones replace, of one or more pools. */
export interface ReplacementInProgress {
  /** When it began, or when the last machine was removed. */
  readonly at: number;
  /** The machines that are still to be removed. */
  readonly replaced: readonly MachineId[];
  /** Created for it, and kept as long as it is in progress. */
  readonly added: readonly MachineId[];
}

/** Removals after which pods of a workload found no node, one after the other. */
export interface FailedRemovals {
  readonly count: number;
  /** Until when machines with pods of the workload are kept. Wall clock. */
  readonly until: number;
}

/** What the autoscaler remembers of the machines of the pool, by machine id. */
export interface PoolScaling {
  /** Wall clock of a decision that confirmed it. */
  readonly at: number;
  readonly unneededSince: Readonly<Record<string, number>>;
  /** Uids of the pods that a machine was requested for, until it is known whether it helped one. */
  readonly trials: Readonly<Record<string, readonly string[]>>;
  /** What became of the last machines, if none of them helped a pod. */
  readonly streak: readonly string[];
  /** Of this pool's machines and of others. */
  readonly replacement?: ReplacementInProgress;
  /** By workload, of all pools. Absent: none. */
  readonly failedRemovals?: Readonly<Record<string, FailedRemovals>>;
}

export interface PoolState {
  readonly pool: string;
  readonly pause?: PoolPause;
  readonly backoff?: PoolBackoff;
  readonly lost?: LostMachines;
  readonly scaling?: PoolScaling;
  /** Keyed by `<cpu>x<memory bytes>x<disk bytes>`. */
  readonly allocatable: Readonly<Record<string, LearnedAllocatable>>;
}
