// SPDX-License-Identifier: Apache-2.0
// One round: read everything, converge a step. Level-triggered: what happened before does not matter, only what is.
import { isAtRest, type Machine, mayExist } from '../model/machine.ts';
import { InvalidConfig } from '../ports/errors.ts';
import { adopt } from './adoption/adopt.ts';
import { atOnce } from './at-once.ts';
import { Books } from './books.ts';
import { backoffOf } from './capacity/backoff.ts';
import { place, type Refused } from './capacity/place.ts';
import { countRooms } from './capacity/room.ts';
import { carryOutIntents } from './intents.ts';
import type { Leadership } from './leadership.ts';
import { advance } from './lifecycle/advance.ts';
import { fail } from './lifecycle/fail.ts';
import { Job } from './lifecycle/job.ts';
import type { Memory } from './memory.ts';
import { keepMinimum } from './minimum.ts';
import { removeGhosts } from './nodes/ghosts.ts';
import { readCluster } from './nodes/sight.ts';
import type { EngineOptions } from './options.ts';
import { collect } from './orphans/collect.ts';
import { sweep } from './orphans/sweep.ts';
import { nextRoundAt } from './pace.ts';
import { Turn } from './turn.ts';
import { recentViews } from './views.ts';

export interface RoundReport {
  /** Regions that could not be read, with the reason: nothing of theirs was judged. */
  readonly stale: Readonly<Record<string, string>>;
  /** Regions where a VM is being made of which nobody can say whose it is. */
  readonly undecided: readonly string[];
  /** Machines that are on their way to somewhere. */
  readonly underWay: number;
  /** Wall clock of the last fresh reading of each side in this process. */
  readonly seenAt: {
    readonly regions: Readonly<Record<string, number>>;
    readonly cluster: number | undefined;
  };
  /** When there may be something to do again, if nobody asks for anything. */
  readonly nextAt: number;
}

const MACHINES_AT_ONCE = 8;
const VIEW_OLD_MS = 10_000;

export async function runRound(
  options: EngineOptions,
  leadership: Leadership,
  memory: Memory,
): Promise<RoundReport> {
  const { store, clock, mirror } = options;
  const books = await Books.open(mirror, leadership.lease, () => clock.now());
  const { views, stale } = await recentViews(options, leadership, memory);
  options.outlook.saw(views, stale);
  const sight = await readCluster(options, memory);
  const { journal } = store;
  const turn = new Turn({ ...options, journal, books, leadership, memory, views, sight });
  for (const [region, { takenAt }] of views) memory.seenAt.set(region, takenAt);
  await tellStale(turn, stale);
  await tellCluster(turn);
  const undecided = await adopt(turn);
  options.outlook.adopted(views.keys());
  await carryOutIntents(turn);
  await keepMinimum(turn, undecided);
  await carryOutIntents(turn);
  const { waiting } = await placeAll(turn, () => true);
  await advanceAll(turn, ({ phase }) => mayExist(phase));
  await fillFreedPlaces(turn, waiting);
  await sweep(turn, undecided);
  await removeGhosts(turn);
  await collect(turn);
  await countRooms(turn, options.outlook);
  const underWay = turn.books.machines.filter((machine) => !isAtRest(machine));
  return {
    stale,
    undecided: [...undecided],
    underWay: underWay.length,
    nextAt: nextRoundAt(turn, underWay),
    seenAt: { regions: Object.fromEntries(memory.seenAt), cluster: memory.clusterSeenAt },
  };
}

async function advanceAll(turn: Turn, which: (machine: Machine) => boolean): Promise<void> {
  const moving = turn.books.machines.filter(which);
  await atOnce(moving, MACHINES_AT_ONCE, async ({ id }) => {
    await advance(turn, id);
    await turn.breathe();
  });
}

async function tellStale(turn: Turn, stale: Readonly<Record<string, string>>): Promise<void> {
  for (const region of turn.views.keys()) turn.memory.told.delete(`region ${region}`);
  for (const [region, why] of Object.entries(stale)) {
    await turn.tellOnce(`region ${region}`, {
      kind: 'saw',
      subject: { region },
      reason: 'ViewStale',
      message: `region ${region} cannot be read, nothing of it is judged: ${why}`,
    });
  }
}

async function tellCluster(turn: Turn): Promise<void> {
  if (turn.sight.kind !== 'stale') return void turn.memory.told.delete('kubernetes');
  await turn.tellOnce('kubernetes', {
    kind: 'saw',
    subject: {},
    reason: 'ViewStale',
    message: `Kubernetes cannot be read, nothing of it is judged: ${turn.sight.why}`,
  });
}

/**
 * Creations that have ended in this round make room for machines that were waiting for it. Not for one that lost its
 * place meanwhile: what took it is not in this view. Nor after a round that took long.
 */
async function fillFreedPlaces(turn: Turn, waiting: ReadonlySet<string>): Promise<void> {
  const isOld = [...turn.views.values()].some(({ takenAt }) => turn.now - takenAt > VIEW_OLD_MS);
  if (waiting.size === 0 || isOld) return;
  const { placed } = await placeAll(turn, ({ id }) => waiting.has(id));
  await advanceAll(turn, ({ id }) => placed.has(id));
}

interface Placing {
  readonly placed: ReadonlySet<string>;
  readonly waiting: ReadonlySet<string>;
}

async function placeAll(turn: Turn, which: (machine: Machine) => boolean): Promise<Placing> {
  const waiting = turn.books.census
    .inPhase('requested')
    // Who was called off meanwhile is not begun: what follows would take away what nobody sees made.
    .filter(({ id }) => !turn.books.isLeaving(id))
    .filter(which)
    .toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1));
  for (const machine of waiting) {
    const pool = turn.pool(machine.pool);
    if (pool === undefined) {
      const message = `pool ${machine.pool} is not in the config`;
      await fail(new Job(turn, machine.id), new InvalidConfig('CONFIG_INVALID', message));
      continue;
    }
    const backoff = backoffOf(turn, machine.pool);
    const refused =
      backoff === undefined
        ? await place(turn, machine, pool)
        : { code: backoff.code, sentence: backoff.message };
    if (refused !== undefined) await giveUpIfDue(turn, machine, refused);
    await turn.breathe();
  }
  const idsOf = (phase: Machine['phase']) =>
    new Set<string>(
      waiting.map(({ id }) => id).filter((id) => turn.books.find(id)?.phase === phase),
    );
  return { placed: idsOf('placed'), waiting: idsOf('requested') };
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
