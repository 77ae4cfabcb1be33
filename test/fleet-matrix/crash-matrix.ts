// SPDX-License-Identifier: Apache-2.0
// Kills real processes by SIGKILL at recorded points and starts them again, with the database kept and with it lost.
import { addressesInUse } from '../../src/model/held-addresses.ts';
import {
  formatKillPoint,
  isAroundWrite,
  type KillPoint,
  listKillPoints,
  sampleByName,
  sampleKillPoints,
} from './kill-points.ts';
import {
  Lab,
  listOwnedVms,
  type ProcessResult,
  type Records,
  type Snapshot,
  snapshotUnmanagedVms,
} from './lab.ts';
import { isUnmanagedVm, type SourceName, USER_COPY_VM_ID } from './sources.ts';
import type { Tally } from './tally.ts';

export interface MatrixOptions {
  readonly seed: number;
  readonly records: Records;
  /** Runs only cases whose name contains this text. */
  readonly only: string | undefined;
  /** Machines created and deleted at the same time. */
  readonly machines: number;
  /** Maximum kill points per source and direction; other seeds take others. */
  readonly limit: {
    readonly create: number;
    readonly delete: number;
    /** For `crashes` of them the recovery is killed too, each at `instants` points. */
    readonly recoveries: { readonly crashes: number; readonly instants: number };
  };
  readonly tally: Tally;
  readonly print: (text: string) => void;
}

const CONCURRENCY = 2;

const DATABASE = ['kept', 'lost'] as const;

interface Scenario {
  readonly source: SourceName;
  readonly records: Records;
  readonly direction: 'create' | 'delete';
  readonly targetSize: number;
  readonly from: (Snapshot & { readonly machines: number }) | undefined;
}

interface CrashCase {
  readonly scenario: Scenario;
  readonly point: KillPoint;
  readonly database: (typeof DATABASE)[number];
  /** Where the recovery is killed too. */
  readonly secondKill?: KillPoint;
}

interface Outcome {
  readonly problems: readonly string[];
  /** Whether every planned kill happened before the run ended. */
  readonly wasKilled: boolean;
  /** The kill points of the recovery run. */
  readonly recovery: readonly KillPoint[];
}

export async function runCrashMatrix(source: SourceName, options: MatrixOptions): Promise<void> {
  const { machines, seed, records } = options;
  const site = { source, records, seed };
  const lab = await Lab.open(site);
  try {
    const create = { ...site, direction: 'create', targetSize: machines, from: undefined } as const;
    const up = await lab.scale(create.targetSize);
    const name = `${scenarioName(create)} without a crash`;
    options.tally.count(name, findProblems(lab, up, create));
    await runAll(create, listKillPoints({ writes: up.writes, calls: lab.calls }), options);
    const [ours] = listOwnedVms(lab.sim);
    // A user copies the VM, with its tags and its description.
    if (ours !== undefined) lab.sim.externalChanges.copy(ours.id, USER_COPY_VM_ID);
    const from = { ...lab.snapshot(), machines };
    const remove = { ...site, direction: 'delete', targetSize: 0, from } as const;
    const undisturbed = await Lab.open({ ...site, from });
    const down = await undisturbed.scale(remove.targetSize);
    await undisturbed.close();
    await runAll(
      remove,
      listKillPoints({ writes: down.writes, calls: undisturbed.calls }),
      options,
    );
  } finally {
    await lab.close();
  }
}

async function runAll(
  scenario: Scenario,
  recorded: readonly KillPoint[],
  options: MatrixOptions,
): Promise<void> {
  const { seed, only, limit, tally, print } = options;
  const chosen = sampleKillPoints(recorded, limit[scenario.direction], seed);
  const isWhole = chosen.length === recorded.length;
  const cases = chosen
    .flatMap((point) => listCases(scenario, point, isWhole ? undefined : seed))
    .filter((one) => only === undefined || caseName(one).includes(only));
  let missed = 0;
  const run = async (one: CrashCase) => {
    const { problems, wasKilled, recovery } = await runCase(one, seed);
    if (!wasKilled) missed += 1;
    tally.count(caseName(one), problems);
    return recovery;
  };
  const nameOf = (one: CrashCase) => `${seed} ${caseName(one)}`;
  const repeated = new Set(sampleByName(cases, limit.recoveries.crashes, nameOf));
  const recoveries: CrashCase[] = [];
  await runConcurrently(cases, async (one) => {
    const recovery = await run(one);
    if (!repeated.has(one)) return;
    const instants = recovery.map((secondKill) => ({ ...one, secondKill }));
    recoveries.push(...sampleByName(instants, limit.recoveries.instants, nameOf));
  });
  await runConcurrently(recoveries, async (one) => void (await run(one)));
  print(
    `${scenarioName(scenario)}: ${recorded.length} kill points recorded, ${chosen.length} sampled, ` +
      `${cases.length} crashes with the database kept or lost, ${recoveries.length} more in their recovery; ` +
      `${missed} runs ended before their kill point`,
  );
}

/** In a sample, a kill point that is not around a write is run either with the database or without it. */
function listCases(
  scenario: Scenario,
  point: KillPoint,
  sampleSeed: number | undefined,
): readonly CrashCase[] {
  const cases = DATABASE.map((database) => ({ scenario, point, database }));
  if (sampleSeed === undefined || isAroundWrite(point)) return cases;
  return sampleByName(cases, 1, (one) => `${sampleSeed} ${caseName(one)}`);
}

function caseName({ scenario, point, database, secondKill }: CrashCase): string {
  const name = `${scenarioName(scenario)} ${formatKillPoint(point)} database ${database}`;
  return secondKill === undefined ? name : `${name}, then ${formatKillPoint(secondKill)}`;
}

function scenarioName({ source, direction, records }: Scenario): string {
  return `${source}${records === 'kubernetes' ? ' (records in Kubernetes)' : ''} ${direction}`;
}

async function runCase(one: CrashCase, seed: number): Promise<Outcome> {
  const { scenario, point, database, secondKill } = one;
  const lab = await Lab.open({ ...scenario, seed });
  try {
    const first = await lab.scale(scenario.targetSize, point);
    const wasKilled = first.signal === 'SIGKILL';
    if (!wasKilled && first.exitCode !== 0) {
      return { problems: [formatRun('first run', first)], wasKilled, recovery: [] };
    }
    if (database === 'lost') lab.loseDatabase();
    else lab.expireLease();
    const before = lab.calls.length;
    const second = await lab.scale(scenario.targetSize, secondKill);
    const recovery = listKillPoints({ writes: second.writes, calls: lab.calls.slice(before) });
    if (secondKill === undefined) {
      return { problems: findProblems(lab, second, scenario), wasKilled, recovery };
    }
    lab.expireLease();
    const third = await lab.scale(scenario.targetSize);
    const wasKilledAgain = wasKilled && second.signal === 'SIGKILL';
    return {
      problems: findProblems(lab, third, scenario),
      wasKilled: wasKilledAgain,
      recovery,
    };
  } finally {
    await lab.close();
  }
}

function findProblems(lab: Lab, ran: ProcessResult, { targetSize, from }: Scenario): string[] {
  const before = from?.machines ?? 0;
  const { volumes } = lab.sim.inspect();
  const found: Readonly<Record<string, readonly [number, number]>> = {
    VMs: [listOwnedVms(lab.sim).length, targetSize],
    disks: [
      volumes.filter(({ vmId }) => vmId !== undefined && !isUnmanagedVm(vmId)).length,
      targetSize,
    ],
    ISOs: [volumes.filter(({ content }) => content === 'iso').length, 0],
    'addresses in use': [addressesInUse(lab.machines()).length, targetSize],
    'most VMs at one time': [lab.maxVms, Math.max(before, targetSize)],
    'unmanaged VMs unchanged': [Number(snapshotUnmanagedVms(lab.sim) === lab.unmanagedBefore), 1],
    'exit code': [ran.exitCode ?? -1, 0],
  };
  const problems = Object.entries(found)
    .filter(([, [is, should]]) => is !== should)
    .map(([what, [is, should]]) => `${what}: ${is}, expected ${should}`);
  return problems.length === 0 ? [] : [...problems, formatRun('last run', ran)];
}

function formatRun(name: string, { exitCode, signal, out, err }: ProcessResult): string {
  return `${name} (${signal ?? exitCode}): ${out}${err}`.trim().replaceAll('\n', '\n        ');
}

async function runConcurrently<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (const item of left) await work(item);
    }),
  );
}
