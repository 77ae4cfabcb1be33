// SPDX-License-Identifier: Apache-2.0
// Between two rounds: machines whose task should have ended, or whose guest has answered, go on at once, and whoever
// waited for the turn that they free has it. Everything else is left to the round, which reads anew.
import type { Machine, Phase } from '../model/machine.ts';
import { advanceAll } from './advance-all.ts';
import { fillFreedPlaces } from './capacity/place-all.ts';
import { CREATION_PHASES } from './capacity/under-way.ts';
import { tempoOf } from './lifecycle/job.ts';
import type { Turn } from './turn.ts';

/** Phases in which a machine may wait for a task or a guest. */
const MOVING: readonly Phase[] = [
  'creating',
  'configuring',
  'starting',
  'booting',
  'joining',
  'deleting',
];

/** What the last round worked with, and who found no place in it. */
export interface Stage {
  readonly turn: Turn;
  readonly waiting: ReadonlySet<string>;
}

/** When the next step is worth its while; never, where only a round tells. */
export function nextStepAt({ turn }: Stage): number {
  const instants = moving(turn).map((machine) => instantOf(turn, machine));
  return instants.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
}

/** Undefined when nothing moves any more. */
export async function runStep({ turn, waiting }: Stage): Promise<Stage | undefined> {
  const due = moving(turn).filter((machine) => instantOf(turn, machine) <= turn.now);
  const before = countCreations(turn);
  await advanceAll(turn, due);
  const hasFreed = countCreations(turn) < before;
  const filled = await fillFreedPlaces(turn, hasFreed ? waiting : new Set());
  await advanceAll(turn, filled.placed);
  if (moving(turn).length === 0) return undefined;
  return { turn, waiting: hasFreed ? filled.waiting : waiting };
}

function moving({ books }: Turn): readonly Machine[] {
  return books.census.inPhase(...MOVING);
}

function countCreations({ books }: Turn): number {
  return books.census.inPhase(...CREATION_PHASES).length;
}

function instantOf({ memory, views, now }: Turn, machine: Machine): number {
  const { task, phase, placement } = machine;
  if (!views.has(placement?.region ?? '')) return Number.POSITIVE_INFINITY;
  const until = memory.pauses.get(machine.id)?.until ?? 0;
  if (until > now) return until;
  if (task !== undefined) return memory.tempo.endsAt(tempoOf(machine, task));
  return phase === 'booting' ? memory.guests.nextAt(machine, now) : Number.POSITIVE_INFINITY;
}
