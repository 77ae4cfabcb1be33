// SPDX-License-Identifier: Apache-2.0
// What a decision is made from. The caller collects it; nothing here reads a clock or does I/O.

import type { PoolConfig } from '../config/types/index.ts';
import type { DisruptionBudget } from '../model/disruption-budget.ts';
import type { MachineId, MachineSize, Phase } from '../model/machine.ts';
import type { Pod } from '../model/pod.ts';
import type { LearnedAllocatable } from '../model/pool.ts';
import type { Snapshot } from '../scheduling/index.ts';
import type { ScalingMemory } from './memory.ts';

export interface ScalingInput {
  /** Wall clock. */
  readonly now: number;
  /** Changes with every change of the observation; part of the plan's digest. */
  readonly revision: number;
  /** For pool choice `random`: the same seed gives the same plan. */
  readonly seed: number;
  /** All Nodes with their pods, DaemonSets and storage objects; no pending pods except nominated ones. */
  readonly snapshot: Snapshot;
  /** Pods without a node that are not finished, in any order. */
  readonly pending: readonly Pod[];
  readonly disruptionBudgets: readonly DisruptionBudget[];
  /** Names of Nodes in the snapshot that are not Ready. */
  readonly unreadyNodes: readonly string[];
  /** Machines of all pools. Failed ones may be among them: the circuit breaker counts them. */
  readonly machines: readonly ScalingMachine[];
  readonly pools: readonly ScalingPool[];
  readonly hosts: readonly ScalingHost[];
  /** Why nothing may be decided about the machines of a region, by region. */
  readonly unreadRegions?: Readonly<Record<string, string>>;
  readonly settings: ScalingSettings;
  readonly memory: ScalingMemory;
}

export interface ScalingMachine {
  readonly id: MachineId;
  readonly pool: string;
  readonly size: MachineSize;
  /** Undefined: requested, and without a record yet. */
  readonly phase: Phase | undefined;
  readonly requestedAt: number;
  /** When it became ready; absent before. */
  readonly readySince?: number | undefined;
  /** Its deletion was requested or has begun. */
  readonly isBeingDeleted: boolean;
  /** It never became ready, and is deleted because of that. */
  readonly hasFailed?: boolean | undefined;
  /** It is being drained, or its drain was requested. */
  readonly isDraining: boolean;
  /** Set once it is placed. */
  readonly placement?:
    | { readonly region: string; readonly host: string; readonly name: string }
    | undefined;
  /** The host that it was requested for, until it is placed. */
  readonly requestedHost?: { readonly region: string; readonly host: string } | undefined;
  /** Why it has no place although it was requested: no host has capacity, for example. */
  readonly refusal?: { readonly code: string; readonly message: string } | undefined;
  /** Set once its Node exists. */
  readonly node?: ScalingNode | undefined;
}

/** Facts about the Node of a machine that the scheduler does not read. */
export interface ScalingNode {
  readonly name: string;
  readonly isReady: boolean;
  readonly createdAt: number;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface ScalingPool {
  readonly config: PoolConfig;
  /** Allocatable of joined nodes, by `sizeKey` of the machine. */
  readonly learned: Readonly<Record<string, LearnedAllocatable>>;
  /** No machine may be requested before; with the reason. */
  readonly backoff?: { readonly until: number; readonly message: string } | undefined;
  /** Paused by the circuit breaker or by a person; `until` absent: until it is resumed. */
  readonly pause?: { readonly until?: number; readonly message: string } | undefined;
  /** Wall clock of the last request of a machine, of a machine's removal, and of a removal that failed. */
  readonly lastAddAt?: number | undefined;
  readonly lastDeleteAt?: number | undefined;
  readonly lastFailureAt?: number | undefined;
  /** For how many more machines there are VM ids and addresses. Absent: no limit. */
  readonly freeIdentities?: { readonly machines: number; readonly reason: string } | undefined;
}

/** A host that can run machines of at least one pool. */
export interface ScalingHost {
  readonly region: string;
  readonly name: string;
  /** By pool. A pool that is not listed may not use the host. */
  readonly pools: Readonly<Record<string, HostCapacity>>;
}

/** What is left of a host for a pool, after the pool's overcommit and reserve, all VMs and all machines that were requested before. */
export interface HostCapacity {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** Physical CPUs of the host: no VM may have more. Absent: unknown. */
  readonly maxCpus?: number | undefined;
  /** Why the host cannot be used now, whatever is left. */
  readonly refusal?: { readonly code: string; readonly message: string } | undefined;
}

/** `fewest` cannot be configured: replacements try it. */
export type PoolChoice = 'priority' | 'least-waste' | 'cheapest' | 'balance' | 'random' | 'fewest';

export interface ScalingSettings {
  readonly poolChoice: PoolChoice;
  readonly expendablePriority: number;
  readonly newPodDelayMs: number;
  readonly gpuLabel: string;
  readonly pricing: { readonly vcpuHour: number; readonly memoryGiBHour: number };
  readonly guards: {
    readonly maxTotalUnreadyPercentage: number;
    readonly okTotalUnreadyCount: number;
    readonly breaker: { readonly machines: number; readonly pauseMs: number };
  };
}
