// SPDX-License-Identifier: Apache-2.0
// The durable record of a drain. It is written before the Node is cordoned, so that a crash in between leaves
// no cordoned Node without a record. It stores the Node's previous state, so that cancelling the drain restores
// exactly that.
import type { MachineId } from './machine.ts';

export const DRAIN_STATES = [
  'wanted', // recorded; the Node is untouched
  'cordoned', // our taint is on the Node; pods are checked again before any is evicted
  'evicting', // evictions have begun
  'waiting-for-volumes', // pods are gone; volumes are still attached
  'done', // the machine may be deleted
  'undoing', // cancelled: taint and cordon are being removed
  'undone', // the Node is restored
] as const;

export type DrainState = (typeof DRAIN_STATES)[number];

export const DRAIN_TRANSITIONS: Readonly<Record<DrainState, readonly DrainState[]>> = {
  wanted: ['cordoned', 'undone'],
  cordoned: ['evicting', 'waiting-for-volumes', 'done', 'undoing'],
  evicting: ['waiting-for-volumes', 'done', 'undoing'],
  'waiting-for-volumes': ['done', 'undoing'],
  done: [],
  undoing: ['undone'],
  undone: [],
};

export interface Drain {
  readonly machine: MachineId;
  readonly nodeName: string;
  /** Protects a Node of the same name that joined later: its cordon must not be removed. */
  readonly nodeUid: string;
  readonly state: DrainState;
  readonly stateSince: number;
  readonly reason: string;
  readonly requestedAt: number;
  /** Wall clock after which the drain is cancelled or, if the pool is configured so, forced. */
  readonly deadlineAt: number;
  /** The Node was cordoned before the drain: cancelling leaves it cordoned. */
  readonly wasCordonedBefore: boolean;
  /** `namespace/name` of the pods that could not be evicted at the last attempt, with the reason. */
  readonly blockedBy: readonly { readonly pod: string; readonly reason: string }[];
}
