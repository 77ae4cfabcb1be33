// SPDX-License-Identifier: Apache-2.0
// Who belongs to a pool: the machines that are there or on their way, plus those that were asked for and have no
// record yet, minus those that somebody asked to take away.
import {
  countsTowardsTarget,
  type Machine,
  type MachineSize,
  PHASES,
  type Phase,
} from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';

export interface Member {
  readonly id: MachineId;
  /** Undefined while it has no record. */
  readonly phase: Phase | undefined;
  readonly requestedAt: number;
  readonly placedAt?: number | undefined;
  readonly size: MachineSize;
}

type Coming = Omit<Member, 'phase'>;

/** Machines stand for themselves: those of a thousand are looked through after each change. */
export function membersFrom(
  coming: readonly Coming[],
  machines: readonly Machine[],
  isLeaving: (id: MachineId) => boolean,
): readonly Member[] {
  const present = machines.filter(({ id, phase }) => countsTowardsTarget(phase) && !isLeaving(id));
  const unrecorded = coming
    .filter(({ id }) => !isLeaving(id))
    .map((member) => ({ ...member, phase: undefined }));
  return [...unrecorded, ...present];
}

/** Whoever is furthest from being of use goes first; among equals the youngest. */
export function inDeletionOrder(members: readonly Member[]): readonly Member[] {
  const progress = ({ phase }: Member) => (phase === undefined ? -1 : PHASES.indexOf(phase));
  return members.toSorted(
    (a, b) => progress(a) - progress(b) || b.requestedAt - a.requestedAt || (a.id < b.id ? -1 : 1),
  );
}
