// SPDX-License-Identifier: Apache-2.0
// The durable record of a drain. It is written before the Node is cordoned, because a crash between the
// two must not leave a Node cordoned that nobody knows about; and it remembers what was there before, so
// that calling a drain off restores exactly that.
import type { MachineId } from './machine-id.ts';

export const DRAIN_STATES = [
  'wanted', // recorded; the Node is untouched
  'cordoned', // our taint is on the Node; pods are looked at again before any is evicted
  'evicting', // evictions have begun
  'waiting-for-volumes', // pods are gone; volumes are still attached
  'done', // the machine may be deleted
  'undoing', // called off: taint and cordon are being taken back
  'undone', // the Node is as it was before
] as const;

export type DrainState = (typeof DRAIN_STATES)[number];

export const DRAIN_MOVES: Readonly<Record<DrainState, readonly DrainState[]>> = {
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
  /** Guards against a Node of the same name that joined later: its cordon is not ours to take back. */
  readonly nodeUid: string;
  readonly state: DrainState;
  readonly stateSince: number;
  readonly reason: string;
  readonly requestedAt: number;
  /** Wall clock after which the drain is called off or, where the pool says so, forced. */
  readonly deadlineAt: number;
  /** Somebody else had cordoned the Node before: undoing leaves it cordoned. */
  readonly wasCordonedBefore: boolean;
  /** `namespace/name` of pods that could not be evicted at the last try, with the reason. */
  readonly blockedBy: readonly { readonly pod: string; readonly reason: string }[];
}
