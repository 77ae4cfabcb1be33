// SPDX-License-Identifier: Apache-2.0
// One round: read everything, converge a step. Level-triggered: what happened before does not matter, only what is.
import { mayExist } from '../model/machine.ts';
import { InvalidConfig, PvescalerError } from '../ports/errors.ts';
import type { Hypervisor, RegionView } from '../ports/hypervisor.ts';
import { adopt } from './adoption/adopt.ts';
import { atOnce } from './at-once.ts';
import { Books } from './books.ts';
import { backoffOf } from './capacity/backoff.ts';
import { place } from './capacity/place.ts';
import { carryOutIntents } from './intents.ts';
import { advance } from './lifecycle/advance.ts';
import { fail } from './lifecycle/fail.ts';
import { Job } from './lifecycle/job.ts';
import { keepMinimum } from './minimum.ts';
import type { FleetOptions } from './options.ts';
import { collect } from './orphans/collect.ts';
import { sweep } from './orphans/sweep.ts';
import { type Leadership, type Memory, Turn } from './turn.ts';

export interface RoundReport {
  /** Regions that could not be read, with the reason: nothing of theirs was judged. */
  readonly stale: Readonly<Record<string, string>>;
  /** Regions where a VM is being made of which nobody can say whose it is. */
  readonly undecided: readonly string[];
  /** Machines that are on their way to somewhere. */
  readonly underWay: number;
}

const MACHINES_AT_ONCE = 8;
const VIEW_TOO_OLD_MS = 60_000;

export async function runRound(
  options: FleetOptions,
  leadership: Leadership,
  memory: Memory,
): Promise<RoundReport> {
  const { store, clock } = options;
  const books = await Books.open(store, leadership.lease, () => clock.now());
  const { views, stale } = await readViews(options, leadership.signal);
  const turn = new Turn({ ...options, journal: store.journal, books, leadership, memory, views });
  await tellStale(turn, stale);
  const undecided = await adopt(turn);
  await carryOutIntents(turn);
  await keepMinimum(turn, undecided);
  await carryOutIntents(turn);
  await placeAll(turn);
  const moving = turn.books.machines.filter(({ phase }) => mayExist(phase));
  await atOnce(moving, MACHINES_AT_ONCE, ({ id }) => advance(turn, id));
  await sweep(turn, undecided);
  await collect(turn);
  return { stale, undecided: [...undecided], underWay: countUnderWay(turn) };
}

function countUnderWay(turn: Turn): number {
  const atRest = ['ready', 'draining', 'failed', 'gone'];
  return turn.books.machines.filter(({ phase }) => !atRest.includes(phase)).length;
}

interface Views {
  readonly views: ReadonlyMap<string, RegionView>;
  readonly stale: Readonly<Record<string, string>>;
}

async function readViews(
  { hypervisors, clock }: FleetOptions,
  signal: AbortSignal | undefined,
): Promise<Views> {
  const views = new Map<string, RegionView>();
  const stale: Record<string, string> = {};
  const read = async (name: string, hypervisor: Hypervisor) => {
    try {
      const view = await hypervisor.view({ signal });
      if (clock.now() - view.takenAt > VIEW_TOO_OLD_MS) stale[name] = 'its overview is too old';
      else views.set(name, view);
    } catch (error) {
      if (!(error instanceof PvescalerError) || error.code === 'CANCELLED') throw error;
      stale[name] = error.message;
    }
  };
  await Promise.all([...hypervisors].map(([name, hypervisor]) => read(name, hypervisor)));
  return { views, stale };
}

async function tellStale(turn: Turn, stale: Views['stale']): Promise<void> {
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

async function placeAll(turn: Turn): Promise<void> {
  const waiting = turn.books.machines
    .filter(({ phase }) => phase === 'requested')
    .toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1));
  for (const machine of waiting) {
    const pool = turn.pool(machine.pool);
    if (pool === undefined) {
      const message = `pool ${machine.pool} is not in the config`;
      await fail(new Job(turn, machine.id), new InvalidConfig('CONFIG_INVALID', message));
      continue;
    }
    if (backoffOf(turn, machine.pool) === undefined) await place(turn, machine, pool);
  }
}
