// SPDX-License-Identifier: Apache-2.0
// The durable record of a drain. It is written before the Node is changed, so that a crash in between leaves no changed
// Node without a record. It stores what the drain has changed, so that undoing it restores exactly that.
import type { MachineId } from './machine.ts';
import type { Taint } from './taints.ts';

export const DRAIN_STATES = [
  'wanted', // recorded; our taint may be on the Node
  'tainted', // our taint is on the Node; pods are checked again before any is evicted
  'evicting', // the Node is cordoned, and evictions have begun
  'waiting-for-volumes', // pods are gone; volumes are still attached
  'done', // the machine may be deleted
  'undoing', // cancelled: taint and cordon are being removed
  'undone', // the Node is restored
] as const;

export type DrainState = (typeof DRAIN_STATES)[number];

/** A pod that tolerates every taint may appear while volumes detach: evictions then begin again. */
export const DRAIN_TRANSITIONS: Readonly<Record<DrainState, readonly DrainState[]>> = {
  wanted: ['tainted', 'done', 'undoing'],
  tainted: ['evicting', 'done', 'undoing'],
  evicting: ['waiting-for-volumes', 'done', 'undoing'],
  'waiting-for-volumes': ['evicting', 'done', 'undoing'],
  done: [],
  undoing: ['undone'],
  undone: [],
};

/** `timed-out`: pods or volumes did not leave in time. `changed`: the node is needed, or is not as it was. */
export type UndoCause = 'cancelled' | 'changed' | 'timed-out';

export interface DrainBlocker {
  /** A pod as `namespace/name`, `volume <name>`, or `Proxmox region <name>`. */
  readonly object: string;
  readonly reason: string;
}

export interface Drain {
  readonly machine: MachineId;
  readonly nodeName: string;
  /** Protects a Node of the same name that joined later: its cordon must not be removed. */
  readonly nodeUid: string;
  readonly state: DrainState;
  readonly stateSince: number;
  /** The intent that requested it last. */
  readonly intent: string;
  readonly requestedBy: string;
  readonly reason: string;
  readonly requestedAt: number;
  /** From the beginning of the phase `draining`: then the drain is undone or, if the pool is configured so, forced. */
  readonly timeoutMs: number;
  /** Set before the drain cordons the Node. A Node that was cordoned before stays so when the drain is undone. */
  readonly isCordonedByDrain: boolean;
  /** What the drain waited for at the last attempt; pods that are only terminating come last. */
  readonly blockedBy: readonly DrainBlocker[];
  /** Set when it is decided to undo the drain. */
  readonly undo?: { readonly cause: UndoCause; readonly message: string };
}

const TERMINATING = 'it is terminating';

export function terminatingPod(object: string): DrainBlocker {
  return { object, reason: TERMINATING };
}

export function isTerminatingPod({ reason }: DrainBlocker): boolean {
  return reason === TERMINATING;
}

const MAX_NAMED_BLOCKERS = 3;

export function formatBlockers(blockedBy: readonly DrainBlocker[]): string {
  const named = blockedBy.slice(0, MAX_NAMED_BLOCKERS);
  const more = blockedBy.length - named.length;
  const text = named.map(({ object, reason }) => `${object}: ${reason}`).join('; ');
  return more === 0 ? text : `${text}; and ${more} more`;
}

/** Whether it is over: the machine may be deleted, or the Node is as it was before. */
export function isDrainOver({ state }: Pick<Drain, 'state'>): boolean {
  return DRAIN_TRANSITIONS[state].length === 0;
}

/**
 * On a Node that is being drained. With this prefix the Cluster Autoscaler neither expects the taint on new nodes of the
 * group nor takes the Node for one that is starting.
 */
export const DRAIN_TAINT: Taint = {
  key: 'status-taint.cluster-autoscaler.kubernetes.io/pvescaler-draining',
  value: '',
  effect: 'NoSchedule',
};

/** Value of the taint once the drain has cordoned the Node too: undoing it without the record must uncordon. */
export const CORDONED_BY_DRAIN = 'cordoned';
