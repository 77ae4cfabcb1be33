// SPDX-License-Identifier: Apache-2.0
// Between two rounds: machines whose task should have ended, or whose guest has answered, go on at once, and whoever
// waited for the turn that they free has it. Everything else is left to the round, which reads anew.
import type { Machine, Phase } from '../../model/machine.ts';
import { CREATION_PHASES } from '../capacity/creation-limits.ts';
import { tempoOf } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { fillFreedPlaces } from '../machine/requested.ts';
import { reconcileMachines } from './reconcile-machines.ts';

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
export interface Interval {
  readonly context: ReconcileContext;
  readonly waiting: ReadonlySet<string>;
}

/** When the next step is worth its while; never, where only a round tells. */
export function nextStepAt({ context }: Interval): number {
  const instants = moving(context).map((machine) => instantOf(context, machine));
  return instants.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
}

/** Undefined when nothing moves any more. */
export async function runStep({ context, waiting }: Interval): Promise<Interval | undefined> {
  const due = moving(context).filter((machine) => instantOf(context, machine) <= context.now);
  const before = countCreations(context);
  await reconcileMachines(context, due);
  const hasFreed = countCreations(context) < before;
  const filled = await fillFreedPlaces(context, hasFreed ? waiting : new Set());
  await reconcileMachines(context, filled.placed);
  if (moving(context).length === 0) return undefined;
  return { context, waiting: hasFreed ? filled.waiting : waiting };
}

function moving({ records }: ReconcileContext): readonly Machine[] {
  return records.index.inPhase(...MOVING);
}

function countCreations({ records }: ReconcileContext): number {
  return records.index.inPhase(...CREATION_PHASES).length;
}

function instantOf({ state, views, now }: ReconcileContext, machine: Machine): number {
  const { task, phase, placement } = machine;
  if (!views.has(placement?.region ?? '')) return Number.POSITIVE_INFINITY;
  const until = state.backoffs.get(machine.id)?.until ?? 0;
  if (until > now) return until;
  if (task !== undefined) return state.taskPolling.endsAt(tempoOf(machine, task));
  return phase === 'booting' ? state.guestProbes.nextAt(machine, now) : Number.POSITIVE_INFINITY;
}
