// SPDX-License-Identifier: Apache-2.0
// The members of a pool: machines that exist or are being provisioned, plus requested ones without a record yet, minus
// those whose deletion was requested.
import {
  countsTowardsTarget,
  type Machine,
  type MachineSize,
  PHASES,
  type Phase,
} from '../model/machine.ts';
import type { MachineId } from '../model/machine-id.ts';

export interface Member {
  readonly id: MachineId;
  /** Undefined while it has no record. */
  readonly phase: Phase | undefined;
  readonly requestedAt: number;
  readonly placedAt?: number | undefined;
  readonly size: MachineSize;
}

type RequestedMember = Omit<Member, 'phase'>;

/** Returns recorded machines as they are: this runs after each change of a pool of a thousand, so it copies none. */
export function listMembers(
  requested: readonly RequestedMember[],
  machines: readonly Machine[],
  isDeletionRequested: (id: MachineId) => boolean,
): readonly Member[] {
  const recorded = machines.filter(
    ({ id, phase }) => countsTowardsTarget(phase) && !isDeletionRequested(id),
  );
  const unrecorded = requested
    .filter(({ id }) => !isDeletionRequested(id))
    .map((member) => ({ ...member, phase: undefined }));
  return [...unrecorded, ...recorded];
}

/** The member with the least progress first; among equals the youngest. */
export function sortForDeletion(members: readonly Member[]): readonly Member[] {
  const progress = ({ phase }: Member) => (phase === undefined ? -1 : PHASES.indexOf(phase));
  return members.toSorted(
    (a, b) => progress(a) - progress(b) || b.requestedAt - a.requestedAt || (a.id < b.id ? -1 : 1),
  );
}
