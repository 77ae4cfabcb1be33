// SPDX-License-Identifier: Apache-2.0
// One round: read everything, converge a step. Level-triggered: what happened before does not matter, only what is.
import { isAtRest, mayExist } from '../model/machine.ts';
import { adopt } from './adoption/adopt.ts';
import { advanceAll } from './advance-all.ts';
import { Books } from './books.ts';
import { fillFreedPlaces, placeAll } from './capacity/place-all.ts';
import { countRooms } from './capacity/room.ts';
import { carryOutIntents } from './intents.ts';
import type { Leadership } from './leadership.ts';
import type { Memory } from './memory.ts';
import { keepMinimum } from './minimum.ts';
import { removeGhosts } from './nodes/ghosts.ts';
import { readCluster } from './nodes/sight.ts';
import type { EngineOptions } from './options.ts';
import { collect } from './orphans/collect.ts';
import { sweep } from './orphans/sweep.ts';
import { nextRoundAt } from './pace.ts';
import type { Stage } from './step.ts';
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

/** A round, and what goes on until the next one. */
export interface Round {
  readonly report: RoundReport;
  readonly stage: Stage;
}

/** For who runs one round and no steps. */
export async function runRound(
  options: EngineOptions,
  leadership: Leadership,
  memory: Memory,
): Promise<RoundReport> {
  return (await runWholeRound(options, leadership, memory)).report;
}

export async function runWholeRound(
  options: EngineOptions,
  leadership: Leadership,
  memory: Memory,
): Promise<Round> {
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
  const { waiting } = await placeAll(turn);
  const existing = turn.books.machines.filter(({ phase }) => mayExist(phase));
  await advanceAll(turn, existing);
  const filled = await fillFreedPlaces(turn, waiting);
  await advanceAll(turn, filled.placed);
  await sweep(turn, undecided);
  await removeGhosts(turn);
  await collect(turn);
  await countRooms(turn, options.outlook);
  const underWay = turn.books.machines.filter((machine) => !isAtRest(machine));
  const report = {
    stale,
    undecided: [...undecided],
    underWay: underWay.length,
    nextAt: nextRoundAt(turn, underWay),
    seenAt: { regions: Object.fromEntries(memory.seenAt), cluster: memory.clusterSeenAt },
  };
  return { report, stage: { turn, waiting: filled.waiting } };
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
