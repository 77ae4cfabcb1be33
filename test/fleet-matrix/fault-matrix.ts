// SPDX-License-Identifier: Apache-2.0
// Every call and every task of a run, combined with every fault. Each run ends converged, or failed with a reason and
// a clean site. In one process, on virtual time.
import type { FaultRule } from '../../src/sim/proxmox/index.ts';
import {
  countAddressesInUse,
  createProcess,
  createSite,
  REASON,
  readInventory,
  readMachines,
  reconcileUntilIdle,
  type Site,
  type SourceName,
} from '../fleet/simulated-site.ts';
import { sampleEvenly } from './kill-points.ts';
import { observeCalls } from './observe-calls.ts';
import type { Tally } from './tally.ts';

const MINUTE_MS = 60_000;
const HOSTS = ['pve1', 'pve2', 'pve3'];
const DIRECTIONS = ['up', 'down'] as const;
const EMPTY_INVENTORY = JSON.stringify({ vms: [], machines: [], isos: [], disks: [] });

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

interface FaultCell {
  readonly direction: (typeof DIRECTIONS)[number];
  readonly fault: Fault;
  /** Undefined for a task fault, which applies to the next task of its type. */
  readonly at: { readonly call: string; readonly number: number } | undefined;
}

export interface FaultOptions {
  readonly seed: number;
  readonly only: string | undefined;
  readonly limit: number;
  readonly tally: Tally;
  readonly print: (text: string) => void;
}

export async function runFaultMatrix(source: SourceName, options: FaultOptions): Promise<void> {
  const { seed, only, limit, tally, print } = options;
  const recorded = await recordCells(source);
  const cells = sampleEvenly(recorded, limit, seed);
  if (only === undefined)
    tally.count(`fault ${source}: the sample has every kind`, findMissingKinds(cells, recorded));
  for (const cell of cells) {
    const name = `fault ${source} ${JSON.stringify(cell)}`;
    if (only !== undefined && !name.includes(only)) continue;
    const problems = await runCell(source, cell).catch((error: unknown) => [String(error)]);
    tally.count(name, problems);
  }
  print(`faults, ${source}: ${recorded.length} cells recorded, ${cells.length} sampled`);
}

async function recordCells(source: SourceName): Promise<readonly FaultCell[]> {
  const site = createSite(source);
  const cells: FaultCell[] = [];
  const tasks = new Set<string>();
  for (const direction of DIRECTIONS) {
    const counts = new Map<string, number>();
    observeCalls(site, (call) => {
      const number = (counts.get(call) ?? 0) + 1;
      counts.set(call, number);
      for (const fault of CALL_FAULTS) cells.push({ direction, fault, at: { call, number } });
    });
    await scale(site, direction);
    for (const { type: taskType } of site.sim.saveState().tasks) {
      if (tasks.has(taskType)) continue;
      tasks.add(taskType);
      for (const fault of TASK_FAULTS) {
        cells.push({ direction, fault: { ...fault, taskType }, at: undefined });
      }
    }
  }
  // Sorted by fault, task faults first, so that an even sample has some of each.
  return cells.toSorted((a, b) => CALL_FAULTS.indexOf(a.fault) - CALL_FAULTS.indexOf(b.fault));
}

/** Kinds that were recorded but are missing from the sample. */
function findMissingKinds(
  cells: readonly FaultCell[],
  recorded: readonly FaultCell[],
): readonly string[] {
  const kindsOf = (among: readonly FaultCell[]) =>
    new Set(
      among.flatMap(({ direction, fault, at }) => [
        direction,
        at === undefined ? 'task' : formatFault(fault),
      ]),
    );
  const taken = kindsOf(cells);
  return [...kindsOf(recorded)].filter((kind) => !taken.has(kind)).map((kind) => `no ${kind}`);
}

function formatFault({ kind, status, times }: Fault): string {
  return [kind, status, times].join(' ').trim();
}

async function scale(
  site: Site,
  direction: FaultCell['direction'],
  maxPasses?: number,
): Promise<void> {
  const fleet = createProcess(site, { seed: direction === 'up' ? 1 : 2 });
  await fleet.scaleTo('workers', direction === 'up' ? 1 : 0, REASON);
  await reconcileUntilIdle(site, fleet, maxPasses === undefined ? {} : { maxPasses });
}

async function runCell(source: SourceName, cell: FaultCell): Promise<readonly string[]> {
  const site = createSite(source);
  if (cell.direction === 'down') await scale(site, 'up');
  injectFault(site, cell);
  const problems: string[] = [];
  if (cell.direction === 'up') {
    await scale(site, 'up', 60);
    await recover(site, cell);
    problems.push(...(await findUnsettled(site)));
  }
  await scale(site, 'down', cell.direction === 'down' ? 60 : undefined);
  await recover(site, cell);
  const left = JSON.stringify(readInventory(site));
  if (left !== EMPTY_INVENTORY) problems.push(`leftovers: ${left}`);
  const addresses = await countAddressesInUse(site.store);
  if (addresses > 0) problems.push(`${addresses} addresses still in use`);
  return problems;
}

function injectFault(site: Site, { at, fault }: FaultCell): void {
  if (at === undefined) {
    site.sim.faults.add(fault);
    return;
  }
  let left = at.number;
  observeCalls(site, (call) => {
    if (call !== at.call) return;
    left -= 1;
    if (left === 0) site.sim.faults.add(fault);
  });
}

/** Brings hosts back after a while; an administrator deletes locked VMs, which pvescaler cannot. */
async function recover(site: Site, { fault }: FaultCell): Promise<void> {
  await site.clock.advance(2 * MINUTE_MS);
  for (const host of HOSTS) site.sim.externalChanges.hostUp(host);
  const fleet = createProcess(site, { seed: 3 });
  if (/^host-down|^task-killed/.test(fault.kind)) {
    await reconcileUntilIdle(site, fleet, { maxPasses: 5 });
    deleteLockedVms(site);
  }
  await reconcileUntilIdle(site, fleet);
  // A seed that could not be deleted is retried after a pause.
  await site.clock.advance(5 * MINUTE_MS);
  await reconcileUntilIdle(site, fleet);
}

/** A worker that was killed while it created a VM leaves the VM locked, with its disks. */
function deleteLockedVms({ sim }: Site): void {
  const { vms, volumes } = sim.inspect();
  for (const { id, host, config } of vms) {
    if (!['create', 'clone'].includes(config['lock'] ?? '')) continue;
    sim.externalChanges.delete(id);
    for (const disk of volumes.filter(({ vmId }) => vmId === id)) {
      sim.externalChanges.deleteVolume(host, disk.id);
    }
  }
}

/** A machine is settled when it is ready with its VM, or failed with a reason and no leftovers. */
async function findUnsettled(site: Site): Promise<readonly string[]> {
  const machines = await readMachines(site.store);
  const ready = machines.filter(({ phase }) => phase === 'ready').map(({ id }) => id);
  const failed = machines.filter(({ phase }) => phase === 'failed');
  const left = readInventory(site);
  const facts: Readonly<Record<string, boolean>> = {
    'every machine is ready or failed': ready.length + failed.length === machines.length,
    'every failure has a reason': failed.every(({ failure }) => /\w/.test(failure?.message ?? '')),
    'the VMs are those of ready machines': left.machines.join() === ready.join(),
    'no ISO is left': left.isos.length === 0,
    'no disk is left': left.disks.length === ready.length,
    'no address is in use without a machine':
      (await countAddressesInUse(site.store)) === ready.length,
  };
  const wrong = Object.entries(facts).filter(([, holds]) => !holds);
  if (wrong.length === 0) return [];
  return [
    ...wrong.map(([fact]) => `does not hold: ${fact}`),
    JSON.stringify({ left, machines: machines.map(({ phase, failure }) => [phase, failure]) }),
  ];
}
