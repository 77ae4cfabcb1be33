// SPDX-License-Identifier: Apache-2.0
// Every call that a run makes, and every task it starts, times everything that can go wrong there. It ends
// converged, or failed with a reason and a clean site. In one process, on virtual time.
import type { FaultRule } from '../../src/sim/proxmox/index.ts';
import {
  addressesInUse,
  aProcess,
  aSite,
  machinesIn,
  remains,
  type Site,
  type SourceName,
  untilAtRest,
  WHY,
} from '../fleet/simulated-site.ts';
import { onCall } from './on-call.ts';
import { spread } from './points.ts';
import type { Tally } from './tally.ts';

const MINUTE_MS = 60_000;
const HOSTS = ['pve1', 'pve2', 'pve3'];
const PHASES = ['up', 'down'] as const;
const NOTHING = JSON.stringify({ vms: [], machines: [], isos: [], disks: [] });

type Fault = Omit<FaultRule, 'endpoint'>;

const CALL_FAULTS: readonly Fault[] = [
  { kind: 'error', status: 500, message: 'something went wrong' },
  { kind: 'error', status: 500, message: 'something went wrong', times: 4 },
  { kind: 'error', status: 401, message: 'No ticket' },
  { kind: 'error', status: 403, message: 'Permission check failed' },
  { kind: 'error', status: 596, message: 'Connection timed out' },
  { kind: 'error', status: 500, message: "can't lock file '/var/lock/x' - got timeout" },
  { kind: 'delay', delayMs: 5 * MINUTE_MS },
  { kind: 'response-delayed', delayMs: MINUTE_MS },
  { kind: 'hang' },
  { kind: 'response-lost' },
  { kind: 'response-lost', times: 3 },
  { kind: 'host-down' },
  { kind: 'host-down-after' },
];

const TASK_FAULTS: readonly Fault[] = [
  { kind: 'task-fails', delayMs: 1_000 },
  { kind: 'task-fails', delayMs: 1_000, times: 3 },
  { kind: 'task-killed', delayMs: 1_000 },
  { kind: 'task-killed' },
];

interface Cell {
  readonly phase: (typeof PHASES)[number];
  readonly fault: Fault;
  /** Undefined for a fault of a task, which waits for its task. */
  readonly at: { readonly call: string; readonly number: number } | undefined;
}

export interface FaultOptions {
  readonly seed: number;
  readonly only: string | undefined;
  readonly most: number;
  readonly tally: Tally;
  readonly say: (text: string) => void;
}

export async function faultMatrix(source: SourceName, options: FaultOptions): Promise<void> {
  const { seed, only, most, tally, say } = options;
  const recorded = await record(source);
  const cells = spread(recorded, most, seed);
  if (only === undefined) tally.count(`fault ${source}: some of each`, missingIn(cells, recorded));
  for (const cell of cells) {
    const name = `fault ${source} ${JSON.stringify(cell)}`;
    if (only !== undefined && !name.includes(only)) continue;
    const problems = await suffer(source, cell).catch((error: unknown) => [String(error)]);
    tally.count(name, problems);
  }
  say(`faults, ${source}: ${recorded.length} cells, ${cells.length} taken`);
}

async function record(source: SourceName): Promise<readonly Cell[]> {
  const site = aSite(source);
  const cells: Cell[] = [];
  const tasks = new Set<string>();
  for (const phase of PHASES) {
    const counts = new Map<string, number>();
    onCall(site, (call) => {
      const number = (counts.get(call) ?? 0) + 1;
      counts.set(call, number);
      for (const fault of CALL_FAULTS) cells.push({ phase, fault, at: { call, number } });
    });
    await scale(site, phase);
    for (const { type: taskType } of site.sim.saveState().tasks) {
      if (tasks.has(taskType)) continue;
      tasks.add(taskType);
      for (const fault of TASK_FAULTS) {
        cells.push({ phase, fault: { ...fault, taskType }, at: undefined });
      }
    }
  }
  // Fault by fault, tasks first: an even spread takes its share of each, however many calls there were.
  return cells.toSorted((a, b) => CALL_FAULTS.indexOf(a.fault) - CALL_FAULTS.indexOf(b.fault));
}

/** What a sample may not do without. */
function missingIn(cells: readonly Cell[], recorded: readonly Cell[]): readonly string[] {
  const sorts = (among: readonly Cell[]) =>
    new Set(
      among.flatMap(({ phase, fault, at }) => [phase, at === undefined ? 'task' : nameOf(fault)]),
    );
  const taken = sorts(cells);
  return [...sorts(recorded)].filter((sort) => !taken.has(sort)).map((sort) => `no ${sort}`);
}

function nameOf({ kind, status, times }: Fault): string {
  return [kind, status, times].join(' ').trim();
}

async function scale(site: Site, phase: Cell['phase'], rounds?: number): Promise<void> {
  const fleet = aProcess(site, { seed: phase === 'up' ? 1 : 2 });
  await fleet.scaleTo('workers', phase === 'up' ? 1 : 0, WHY);
  await untilAtRest(site, fleet, rounds === undefined ? {} : { rounds });
}

async function suffer(source: SourceName, cell: Cell): Promise<readonly string[]> {
  const site = aSite(source);
  if (cell.phase === 'down') await scale(site, 'up');
  arm(site, cell);
  const problems: string[] = [];
  if (cell.phase === 'up') {
    await scale(site, 'up', 60);
    await recover(site, cell);
    problems.push(...(await unsettled(site)));
  }
  await scale(site, 'down', cell.phase === 'down' ? 60 : undefined);
  await recover(site, cell);
  const left = JSON.stringify(remains(site));
  if (left !== NOTHING) problems.push(`left: ${left}`);
  const addresses = await addressesInUse(site.store);
  if (addresses > 0) problems.push(`${addresses} addresses still in use`);
  return problems;
}

function arm(site: Site, { at, fault }: Cell): void {
  if (at === undefined) {
    site.sim.faults.add(fault);
    return;
  }
  let left = at.number;
  onCall(site, (call) => {
    if (call !== at.call) return;
    left -= 1;
    if (left === 0) site.sim.faults.add(fault);
  });
}

/** Hosts come back after a while, and a person removes what only a person can. */
async function recover(site: Site, { fault }: Cell): Promise<void> {
  await site.clock.advance(2 * MINUTE_MS);
  for (const host of HOSTS) site.sim.externalChanges.hostUp(host);
  const fleet = aProcess(site, { seed: 3 });
  if (/^host-down|^task-killed/.test(fault.kind)) {
    await untilAtRest(site, fleet, { rounds: 5 });
    removeHalfMade(site);
  }
  await untilAtRest(site, fleet);
  // A seed that could not be removed at once is tried again after a pause.
  await site.clock.advance(5 * MINUTE_MS);
  await untilAtRest(site, fleet);
}

/** A worker that died while it made a VM left one with a lock, and its disks. */
function removeHalfMade({ sim }: Site): void {
  const { vms, volumes } = sim.inspect();
  for (const { id, host, config } of vms) {
    if (!['create', 'clone'].includes(config['lock'] ?? '')) continue;
    sim.externalChanges.delete(id);
    for (const disk of volumes.filter(({ vmId }) => vmId === id)) {
      sim.externalChanges.deleteVolume(host, disk.id);
    }
  }
}

/** Settled = ready with its VM, or failed with a reason and nothing left. */
async function unsettled(site: Site): Promise<readonly string[]> {
  const machines = await machinesIn(site.store);
  const ready = machines.filter(({ phase }) => phase === 'ready').map(({ id }) => id);
  const failed = machines.filter(({ phase }) => phase === 'failed');
  const left = remains(site);
  const facts: Readonly<Record<string, boolean>> = {
    'every machine is ready or failed': ready.length + failed.length === machines.length,
    'every failure has a reason': failed.every(({ failure }) => /\w/.test(failure?.message ?? '')),
    'the VMs are those of ready machines': left.machines.join() === ready.join(),
    'no ISO is left': left.isos.length === 0,
    'no disk is left': left.disks.length === ready.length,
    'no address is left': (await addressesInUse(site.store)) === ready.length,
  };
  const wrong = Object.entries(facts).filter(([, holds]) => !holds);
  if (wrong.length === 0) return [];
  return [
    ...wrong.map(([fact]) => `not so: ${fact}`),
    JSON.stringify({ left, machines: machines.map(({ phase, failure }) => [phase, failure]) }),
  ];
}
