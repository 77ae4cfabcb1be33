// SPDX-License-Identifier: Apache-2.0
// Machines that wait for a place, in the order in which they were asked for.
import type { Machine } from '../../model/machine.ts';
import { InvalidConfig } from '../../ports/errors.ts';
import { fail } from '../lifecycle/fail.ts';
import { Job } from '../lifecycle/job.ts';
import type { Turn } from '../turn.ts';
import { backoffOf } from './backoff.ts';
import { place, type Refused } from './place.ts';

export interface Placing {
  readonly placed: readonly Machine[];
  readonly waiting: ReadonlySet<string>;
}

export async function placeAll(
  turn: Turn,
  which: (machine: Machine) => boolean = () => true,
): Promise<Placing> {
  const waiting = turn.books.census
    .inPhase('requested')
    // Who was called off meanwhile is not begun: what follows would take away what nobody sees made.
    .filter(({ id }) => !turn.books.isLeaving(id))
    .filter(which)
    .toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1));
  for (const machine of waiting) {
    await placeOne(turn, machine);
    await turn.breathe();
  }
  const now = waiting.flatMap(({ id }) => turn.books.find(id) ?? []);
  const still = now.filter(({ phase }) => phase === 'requested').map(({ id }) => id);
  return { placed: now.filter(({ phase }) => phase === 'placed'), waiting: new Set(still) };
}

async function placeOne(turn: Turn, machine: Machine): Promise<void> {
  const pool = turn.pool(machine.pool);
  if (pool === undefined) {
    const message = `pool ${machine.pool} is not in the config`;
    return fail(new Job(turn, machine.id), new InvalidConfig('CONFIG_INVALID', message));
  }
  const backoff = backoffOf(turn, machine.pool);
  const refused =
    backoff === undefined
      ? await place(turn, machine, pool)
      : { code: backoff.code, sentence: backoff.message };
  if (refused !== undefined) await giveUpIfDue(turn, machine, refused);
}

const VIEW_OLD_MS = 10_000;

/**
 * Creations that have ended since the view was taken make room for machines that were waiting for it. Not for one that
 * lost its place meanwhile: what took it is not in this view. Nor when the view is old by now.
 */
export async function fillFreedPlaces(turn: Turn, waiting: ReadonlySet<string>): Promise<Placing> {
  const isOld = [...turn.views.values()].some(({ takenAt }) => turn.now - takenAt > VIEW_OLD_MS);
  if (waiting.size === 0 || isOld) return { placed: [], waiting };
  return placeAll(turn, ({ id }) => waiting.has(id));
}

/** Refusals that pass by themselves: nothing is known, or it is only not its turn. */
const PASSING: readonly string[] = ['VIEW_STALE', 'HOSTS_BUSY'];

/**
 * Where whoever asks would rather ask elsewhere than wait, a machine without a place is given up after a while. What
 * keeps a minimum goes on waiting: it would only be asked for again.
 */
async function giveUpIfDue(turn: Turn, machine: Machine, refused: Refused): Promise<void> {
  const { unplacedTimeoutMs } = turn.settings;
  if (unplacedTimeoutMs === undefined || PASSING.includes(refused.code)) return;
  if (turn.now - machine.requestedAt < unplacedTimeoutMs) return;
  const intent = turn.books.intents.find(({ id }) => id === machine.intent);
  if (intent?.requestedBy === 'minimum') return;
  const { code, sentence: message } = refused;
  await turn.books.releaseAddresses(machine.id);
  await turn.books.move(machine.id, 'failed', {
    failure: { code, message, at: turn.now, phase: machine.phase },
    deletionReason: message,
  });
  await turn.tellOf(machine, {
    kind: 'failed',
    reason: code,
    message: `${machine.id}: ${message}`,
  });
}
