// SPDX-License-Identifier: Apache-2.0
// What packing yields.

import type { Node } from '../../model/node.ts';
import type { Pod } from '../../model/pod.ts';
import type { Reason } from '../reasons.ts';
import type { LimitHit } from './budget.ts';
import type { MachineSize } from './offer.ts';

export interface PlannedMachine {
  readonly pool: string;
  /** Empty where the pool has no places to choose from. */
  readonly domain: string;
  readonly size: MachineSize;
  /** The node it would be, under a name that only this plan uses. */
  readonly node: Node;
  readonly pods: readonly Pod[];
  /** What DaemonSets would run on it from the start; the scheduler may let others wait. */
  readonly daemons: readonly Pod[];
}

export interface ExistingPlacement {
  readonly pod: Pod;
  readonly node: string;
  /** `nominated`: the scheduler is making room there already. */
  readonly how: 'fits' | 'nominated';
}

/**
 * In the order in which everything was placed. Replayed in this order every step passes every filter when
 * each planned machine comes, with its daemons in their order, just before its first pod. Without DaemonSets
 * the machines may as well come all at once.
 */
export interface Step {
  readonly pod: Pod;
  /** Of a node or of a planned machine. */
  readonly node: string;
}

/** Why one kind of new machine would not help. */
export interface Refusal {
  readonly pool: string;
  readonly domain: string;
  readonly reasons: readonly Reason[];
  readonly limit?: LimitHit;
}

export interface Unplaced {
  readonly pod: Pod;
  readonly refusals: readonly Refusal[];
}

export interface Skipped {
  readonly pod: Pod;
  /** Nobody waits for a machine because of it. */
  readonly why: 'gated' | 'expendable' | 'daemon' | 'finished' | 'terminating';
}

export interface Packing {
  readonly machines: readonly PlannedMachine[];
  readonly existing: readonly ExistingPlacement[];
  readonly steps: readonly Step[];
  /** Pods of DaemonSets that had to wait and come to machines after the last step, in this order. */
  readonly latecomers: readonly Step[];
  readonly unplaced: readonly Unplaced[];
  readonly skipped: readonly Skipped[];
}
