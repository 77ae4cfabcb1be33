// SPDX-License-Identifier: Apache-2.0
// Real processes that die by SIGKILL at recorded instants and are started again, with their database and without.
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { openSqliteStore } from '../../src/store/index.ts';
import { systemClock } from '../../src/system/index.ts';
import { Lab, ownVms, type Ran, type Snapshot, strangersOf } from './lab.ts';
import { isDecisive, nameOf, type Point, pointsOf, sampled, spread } from './points.ts';
import { isStranger, PERSONS_COPY, type SourceName } from './sources.ts';
import type { Tally } from './tally.ts';

export interface MatrixOptions {
  readonly seed: number;
  /** Only points whose name has this in it. */
  readonly only: string | undefined;
  /** So many are made and deleted at once. */
  readonly machines: number;
  /** Points per source and direction; the rest is left to other seeds. */
  readonly most: {
    readonly create: number;
    readonly delete: number;
    /** Of those, so many whose recovery dies too, each at so many instants. */
    readonly recoveries: { readonly crashes: number; readonly instants: number };
  };
  readonly tally: Tally;
  readonly say: (text: string) => void;
}

const AT_ONCE = 2;

const DATABASE = ['kept', 'lost'] as const;

interface Scenario {
  readonly source: SourceName;
  readonly direction: 'create' | 'delete';
  readonly wanted: number;
  readonly from: (Snapshot & { readonly machines: number }) | undefined;
}

interface Case {
  readonly scenario: Scenario;
  readonly point: Point;
  readonly database: (typeof DATABASE)[number];
  /** Where the recovery dies, too. */
  readonly again?: Point;
}

interface Outcome {
  readonly problems: readonly string[];
  /** Whether each death came before the end. */
  readonly died: boolean;
  /** The instants of the last run but one: of the recovery, where nothing else is asked for. */
  readonly recovery: readonly Point[];
}

export async function crashMatrix(source: SourceName, options: MatrixOptions): Promise<void> {
  const lab = await Lab.open(source, options.seed);
  try {
    const { machines } = options;
    const create = { source, direction: 'create', wanted: machines, from: undefined } as const;
    const up = await lab.scale(create.wanted);
    options.tally.count(`${source} create without a crash`, await problemsOf(lab, up, create));
    await runAll(create, pointsOf({ writes: up.writes, calls: lab.calls }), options);
    const [ours] = ownVms(lab.sim);
    // A person copies the machine, with its tags and its description.
    if (ours !== undefined) lab.sim.externalChanges.copy(ours.id, PERSONS_COPY);
    const from = { ...lab.snapshot(), machines };
    const remove = { source, direction: 'delete', wanted: 0, from } as const;
    const calm = await Lab.open(source, options.seed, remove.from);
    const down = await calm.scale(remove.wanted);
    await calm.close();
    await runAll(remove, pointsOf({ writes: down.writes, calls: calm.calls }), options);
  } finally {
    await lab.close();
  }
}

async function runAll(
  scenario: Scenario,
  recorded: readonly Point[],
  options: MatrixOptions,
): Promise<void> {
  const { seed, only, most, tally, say } = options;
  const chosen = sampled(recorded, most[scenario.direction], seed);
  const isWhole = chosen.length === recorded.length;
  const cases = chosen
    .flatMap((point, at) => casesOf(scenario, point, isWhole ? 'both' : (at + seed) % 2))
    .filter((one) => only === undefined || caseName(one).includes(only));
  let missed = 0;
  const run = async (one: Case) => {
    const { problems, died, recovery } = await runCase(one, seed);
    if (!died) missed += 1;
    tally.count(caseName(one), problems);
    return recovery;
  };
  const repeated = new Set(spread(cases, most.recoveries.crashes, seed));
  const recoveries: Case[] = [];
  await inParallel(cases, async (one) => {
    const recovery = await run(one);
    if (!repeated.has(one)) return;
    const instants = spread(recovery, most.recoveries.instants, seed);
    recoveries.push(...instants.map((again) => ({ ...one, again })));
  });
  await inParallel(recoveries, async (one) => void (await run(one)));
  say(
    `${scenario.source} ${scenario.direction}: ${recorded.length} points recorded, ${chosen.length} taken, ` +
      `${cases.length} crashes with the database kept or lost, ${recoveries.length} more in their recovery; ` +
      `${missed} were over before their point came`,
  );
}

/** In a sample, an instant that decides nothing is met either with the database or without it. */
function casesOf(scenario: Scenario, point: Point, which: 'both' | number): readonly Case[] {
  const cases = DATABASE.map((database) => ({ scenario, point, database }));
  return which === 'both' || isDecisive(point) ? cases : cases.filter((_, at) => at === which);
}

function caseName({ scenario, point, database, again }: Case): string {
  const name = `${scenario.source} ${scenario.direction} ${nameOf(point)} database ${database}`;
  return again === undefined ? name : `${name}, then ${nameOf(again)}`;
}

async function runCase(one: Case, seed: number): Promise<Outcome> {
  const { scenario, point, database, again } = one;
  const lab = await Lab.open(scenario.source, seed, scenario.from);
  try {
    const first = await lab.scale(scenario.wanted, point);
    const died = first.signal === 'SIGKILL';
    if (!died && first.exitCode !== 0) {
      return { problems: [tellRun('first run', first)], died, recovery: [] };
    }
    if (database === 'lost') lab.loseDatabase();
    else lab.waitForLease();
    const before = lab.calls.length;
    const second = await lab.scale(scenario.wanted, again);
    const recovery = pointsOf({ writes: second.writes, calls: lab.calls.slice(before) });
    if (again === undefined) {
      return { problems: await problemsOf(lab, second, scenario), died, recovery };
    }
    lab.waitForLease();
    const third = await lab.scale(scenario.wanted);
    const diedAgain = died && second.signal === 'SIGKILL';
    return { problems: await problemsOf(lab, third, scenario), died: diedAgain, recovery };
  } finally {
    await lab.close();
  }
}

async function problemsOf(lab: Lab, ran: Ran, { wanted, from }: Scenario): Promise<string[]> {
  const before = from?.machines ?? 0;
  const { volumes } = lab.sim.inspect();
  const found: Readonly<Record<string, readonly [number, number]>> = {
    VMs: [ownVms(lab.sim).length, wanted],
    disks: [volumes.filter(({ vmId }) => vmId !== undefined && !isStranger(vmId)).length, wanted],
    ISOs: [volumes.filter(({ content }) => content === 'iso').length, 0],
    'addresses in use': [await addressesInUse(lab.statePath), wanted],
    'VMs at once': [lab.peak, Math.max(before, wanted)],
    'strangers as they were': [Number(strangersOf(lab.sim) === lab.strangers), 1],
    'exit code': [ran.exitCode ?? -1, 0],
  };
  const problems = Object.entries(found)
    .filter(([, [is, should]]) => is !== should)
    .map(([what, [is, should]]) => `${what}: ${is} instead of ${should}`);
  return problems.length === 0 ? [] : [...problems, tellRun('last run', ran)];
}

function tellRun(name: string, { exitCode, signal, out, err }: Ran): string {
  return `${name} (${signal ?? exitCode}): ${out}${err}`.trim().replaceAll('\n', '\n        ');
}

async function addressesInUse(path: string): Promise<number> {
  const store = await openSqliteStore({ path, clock: systemClock, random: new SeededRandom(1) });
  try {
    const all = await store.addresses.list();
    return all.filter(({ value }) => value.releasedAt === undefined).length;
  } finally {
    await store.close();
  }
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const item of left) await work(item);
    }),
  );
}
