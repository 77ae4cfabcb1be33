// SPDX-License-Identifier: Apache-2.0
// Who belongs to a pool: the machines that are there or on their way, plus those that were asked for and have no
// record yet, minus those that somebody asked to take away.
import type { Intent } from '../model/intent.ts';
import { countsTowardsTarget, type Machine, PHASES, type Phase } from '../model/machine.ts';
import type { MachineId } from '../model/machine-id.ts';

export interface Member {
  readonly id: MachineId;
  /** Undefined while it has no record. */
  readonly phase: Phase | undefined;
  readonly requestedAt: number;
}

interface Records {
  readonly machines: readonly Machine[];
  readonly intents: readonly Intent[];
}

export function membersOf(pool: string, { machines, intents }: Records): readonly Member[] {
  const open = intents.filter((intent) => intent.state === 'open' && intent.pool === pool);
  const leaving = new Set(open.filter(({ kind }) => kind !== 'create').flatMap((i) => i.machines));
  const recorded = new Set(machines.map(({ id }) => id));
  const coming = open
    .filter(({ kind }) => kind === 'create')
    .flatMap(({ machines: ids, requestedAt }) => ids.map((id) => ({ id, requestedAt })))
    .filter(({ id }) => !recorded.has(id))
    .map((member) => ({ ...member, phase: undefined }));
  const present = machines
    .filter((machine) => machine.pool === pool && countsTowardsTarget(machine.phase))
    .map(({ id, phase, requestedAt }) => ({ id, phase, requestedAt }));
  return [...coming, ...present].filter(({ id }) => !leaving.has(id));
}

/** Whoever is furthest from being of use goes first; among equals the youngest. */
export function firstToGo(members: readonly Member[]): readonly Member[] {
  const progress = ({ phase }: Member) => (phase === undefined ? -1 : PHASES.indexOf(phase));
  return members.toSorted(
    (a, b) => progress(a) - progress(b) || b.requestedAt - a.requestedAt || (a.id < b.id ? -1 : 1),
  );
}
