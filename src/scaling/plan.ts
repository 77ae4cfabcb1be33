// SPDX-License-Identifier: Apache-2.0
// The result of a decision as plain data: what to do, and what was refused, each with its reason and the numbers behind
// it. The same input gives the same plan.

import type { MachineId, MachineSize } from '../model/machine.ts';
import type { PoolPauseRequest } from './breaker.ts';
import type { ScalingMemory } from './memory.ts';

export interface Decision {
  readonly plan: Plan;
  /** Pass it to the next decision. */
  readonly memory: ScalingMemory;
  /** Pools that the circuit breaker pauses from now on. The caller stores them. */
  readonly pauses: readonly PoolPauseRequest[];
}

export interface Plan {
  /** Wall clock of the input. */
  readonly at: number;
  /** Identifies the observation that the plan was made from. */
  readonly snapshotDigest: string;
  /** In the order in which they are to be carried out. */
  readonly steps: readonly Step[];
  readonly refusals: readonly Refusal[];
  /** Where pending pods will run without a new machine. */
  readonly placements: readonly PendingPlacement[];
  readonly counts: PlanCounts;
  /** When the plan may change without a change of the observation: a delay or a pause ends. Absent: never. */
  readonly nextAt?: number | undefined;
}

/** Pods, unless stated otherwise. */
export interface PlanCounts {
  readonly nodes: number;
  readonly pending: number;
  /** Will run on nodes that exist. */
  readonly fitExisting: number;
  /** Will run on machines that are being provisioned. */
  readonly fitProvisioning: number;
  /** Will run on machines of this plan. */
  readonly fitNew: number;
  readonly unplaced: number;
  /** Machines that are unneeded now. */
  readonly unneeded: number;
}

export interface PendingPlacement {
  readonly pod: PodName;
  /** A Node, or the name of a machine that is being provisioned. */
  readonly node: string;
  readonly on: 'node' | 'provisioning' | 'nominated';
}

export type Step = CreateStep | DrainStep | CancelStep;

/** Cancels the request of a machine that finds no place and is not needed any more. Nothing of it exists. */
export interface CancelStep {
  readonly kind: 'cancel';
  readonly pool: string;
  readonly machine: MachineId;
  readonly reason: string;
  readonly facts: Facts;
}

/** Requests machines of one pool and size. */
export interface CreateStep {
  readonly kind: 'create';
  readonly pool: string;
  readonly size: MachineSize;
  /** Name of the size; absent for a size without a name. */
  readonly sizeName?: string | undefined;
  /** The host that the machines must be placed on; absent: any host. */
  readonly region?: string | undefined;
  readonly host?: string | undefined;
  /** One entry per machine, with the pods it is for. */
  readonly machines: readonly PlannedPods[];
  /** More machines than all steps of the plan create; they are removed once the new ones are ready. */
  readonly replaces?: readonly MachineId[] | undefined;
  readonly reason: string;
  readonly facts: Facts;
}

export interface PlannedPods {
  readonly pods: readonly PodName[];
}

/** Drains and deletes one machine. */
export interface DrainStep {
  readonly kind: 'drain';
  readonly pool: string;
  readonly machine: MachineId;
  readonly node: string;
  /** Where its pods fit, in the order in which they were placed. Empty: it has no pods to move. */
  readonly moves: readonly PlannedMove[];
  readonly reason: string;
  readonly facts: Facts;
}

export interface PlannedMove {
  readonly pod: PodName;
  readonly to: string;
}

export interface PodName {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export type SubjectKind = 'pod' | 'node' | 'pool' | 'host' | 'cluster';

export interface Refusal {
  /** A pod is named `namespace/name`, a host `region/name`. The name of the cluster is empty. */
  readonly subject: { readonly kind: SubjectKind; readonly name: string };
  readonly code: RefusalCode;
  /** For people, with the numbers. */
  readonly reason: string;
  readonly facts: Facts;
}

export type Facts = Readonly<Record<string, string | number | boolean>>;

export type RefusalCode =
  // pods
  | 'PodTooNew'
  | 'PodGated'
  | 'PodExpendable'
  | 'PodFitsNoPool'
  | 'PodWaitsForLimit'
  | 'PodWaitsForBatch'
  // pools
  | 'PoolBackedOff'
  | 'PoolPaused'
  | 'PoolAtLimit'
  | 'PoolDelayAfterAdd'
  | 'PoolWithoutIdentity'
  | 'PoolWithoutHost'
  | 'PoolBatchFull'
  | 'PoolHeadroomUnmet'
  // hosts
  | 'HostUnusable'
  | 'HostFull'
  | 'RegionUnread'
  // nodes that are not removed
  | 'NodeUnready'
  | 'NodeUtilized'
  | 'NodeNotEmpty'
  | 'NodeUnneededTooShort'
  | 'NodeScaleDownDisabled'
  | 'NodeDoNotDisrupt'
  | 'NodePodBlocks'
  | 'NodePodsFitNowhere'
  | 'NodePodsMightWait'
  | 'NodePodsWaitedBefore'
  | 'NodeNeededByPending'
  | 'NodePoolAtMinimum'
  | 'NodeKeptAsHeadroom'
  | 'NodeReplacesOthers'
  | 'NodePoolDelay'
  | 'NodePoolNeverScalesDown'
  | 'NodePoolMaxConcurrent'
  | 'NodeRemovalWaits'
  | 'NodeRegionUnread'
  // everything
  | 'TooManyUnready';
