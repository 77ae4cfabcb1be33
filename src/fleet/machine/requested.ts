// SPDX-License-Identifier: Apache-2.0
// Machines that wait for a place, in the order in which they were asked for.
import type { Machine } from '../../model/machine.ts';
import { InvalidConfig } from '../../ports/errors.ts';
import { backoffOf } from '../capacity/backoff.ts';
import { type PlacementRefusal, place } from '../capacity/place.ts';
import { MachineReconcile } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { failMachine } from './fail-machine.ts';

export interface PlacementResult {
  readonly placed: readonly Machine[];
  readonly waiting: ReadonlySet<string>;
}

export async function placeRequested(
  context: ReconcileContext,
  which: (machine: Machine) => boolean = () => true,
): Promise<PlacementResult> {
  const waiting = context.records.index
    .inPhase('requested')
    // Who was called off meanwhile is not begun: what follows would take away what nobody sees made.
    .filter(({ id }) => !context.records.isDeletionRequested(id))
    .filter(which)
    .toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1));
  for (const machine of waiting) {
    await placeOne(context, machine);
    await context.yieldToEventLoop();
  }
  const now = waiting.flatMap(({ id }) => context.records.find(id) ?? []);
  const still = now.filter(({ phase }) => phase === 'requested').map(({ id }) => id);
  return { placed: now.filter(({ phase }) => phase === 'placed'), waiting: new Set(still) };
}

async function placeOne(context: ReconcileContext, machine: Machine): Promise<void> {
  const pool = context.pool(machine.pool);
  if (pool === undefined) {
    const message = `pool ${machine.pool} is not in the config`;
    return failMachine(
      new MachineReconcile(context, machine.id),
      new InvalidConfig('CONFIG_INVALID', message),
    );
  }
  const backoff = backoffOf(context, machine.pool);
  const refused =
    backoff === undefined
      ? await place(context, machine, pool)
      : { code: backoff.code, sentence: backoff.message };
  if (refused !== undefined) await giveUpIfDue(context, machine, refused);
}

const VIEW_OLD_MS = 10_000;

/**
 * Creations that have ended since the view was taken make room for machines that were waiting for it. Not for one that
 * lost its place meanwhile: what took it is not in this view. Nor when the view is old by now.
 */
export async function fillFreedPlaces(
  context: ReconcileContext,
  waiting: ReadonlySet<string>,
): Promise<PlacementResult> {
  const isOld = [...context.views.values()].some(
    ({ takenAt }) => context.now - takenAt > VIEW_OLD_MS,
  );
  if (waiting.size === 0 || isOld) return { placed: [], waiting };
  return placeRequested(context, ({ id }) => waiting.has(id));
}

/** Refusals that pass by themselves: nothing is known, or it is only not its turn. */
const PASSING: readonly string[] = ['VIEW_STALE', 'HOSTS_BUSY'];

/**
 * Where whoever asks would rather ask elsewhere than wait, a machine without a place is given up after a while. What
 * keeps a minimum goes on waiting: it would only be asked for again.
 */
async function giveUpIfDue(
  context: ReconcileContext,
  machine: Machine,
  refused: PlacementRefusal,
): Promise<void> {
  const { unplacedTimeoutMs } = context.settings;
  if (unplacedTimeoutMs === undefined || PASSING.includes(refused.code)) return;
  if (context.now - machine.requestedAt < unplacedTimeoutMs) return;
  const intent = context.records.intents.find(({ id }) => id === machine.intent);
  if (intent?.requestedBy === 'minimum') return;
  const { code, sentence: message } = refused;
  await context.records.releaseAddresses(machine.id);
  await context.records.move(machine.id, 'failed', {
    failure: { code, message, at: context.now, phase: machine.phase },
    deletionReason: message,
  });
  await context.recordMachine(machine, {
    kind: 'failed',
    reason: code,
    message: `${machine.id}: ${message}`,
  });
}
