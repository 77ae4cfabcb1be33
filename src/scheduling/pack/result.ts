// SPDX-License-Identifier: Apache-2.0
// The result of packing.

import type { Node } from '../../model/node.ts';
import type { Pod } from '../../model/pod.ts';
import type { FilterReason } from '../reasons.ts';
import type { LimitHit } from './budget.ts';
import type { PlannedSize } from './offer.ts';

export interface PlannedMachine {
  readonly pool: string;
  /** Empty if the pool has no domains. */
  readonly domain: string;
  readonly size: PlannedSize;
  /** The node it would become, with a name that is unique in this plan. */
  readonly node: Node;
  readonly pods: readonly Pod[];
  /** DaemonSet pods that run on it from the start. Others may be added later. */
  readonly daemons: readonly Pod[];
}

export interface ExistingPlacement {
  readonly pod: Pod;
  readonly node: string;
  /** `nominated`: the scheduler is already preempting pods there. */
  readonly how: 'fits' | 'nominated';
}

/**
 * One placement, in order. Replayed in this order every step passes every filter, if each planned machine is
 * added with its daemon pods just before its first pod. Without DaemonSets the machines may be added all at
 * once.
 */
export interface PackingStep {
  readonly pod: Pod;
  /** Name of a node or of a planned machine. */
  readonly node: string;
}

/** Why a new machine of a pool in a domain would not help. */
export interface PoolRefusal {
  readonly pool: string;
  readonly domain: string;
  readonly reasons: readonly FilterReason[];
  readonly limit?: LimitHit;
}

export interface UnplacedPod {
  readonly pod: Pod;
  readonly refusals: readonly PoolRefusal[];
}

export interface SkippedPod {
  readonly pod: Pod;
  /** Why no machine is created for it. */
  readonly reason: 'gated' | 'expendable' | 'daemon' | 'finished' | 'terminating';
}

export interface Packing {
  readonly machines: readonly PlannedMachine[];
  readonly existing: readonly ExistingPlacement[];
  readonly steps: readonly PackingStep[];
  /** DaemonSet pods that are admitted after the last step, in this order. */
  readonly lateDaemonPods: readonly PackingStep[];
  readonly unplaced: readonly UnplacedPod[];
  readonly skipped: readonly SkippedPod[];
}
