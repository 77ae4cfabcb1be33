// SPDX-License-Identifier: Apache-2.0
// Applies an external change to an owned VM at the start of any pass. Unmanaged VMs stay unchanged, owned VMs stay
// owned, and every machine settles. In one process, on virtual time.
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

const COPY = 1_298;
const SPARE = 8_000;
const TEMPLATE = 9_000;
const PASS_START_CALL = 'GET /cluster/resources';
const MINUTE_MS = 60_000;

/** Each change returns the id of the VM that is unmanaged from then on, if there is one. */
const EXTERNAL_CHANGES: Readonly<Record<string, (site: Site, vmId: number) => number | undefined>> =
  {
    rename({ sim }, vmId) {
      sim.externalChanges.rename(vmId, 'my-favourite');
      return undefined;
    },
    retag({ sim }, vmId) {
      sim.externalChanges.retag(vmId, ['mine']);
      return undefined;
    },
    move({ sim }, vmId) {
      const here = sim.inspect().vms.find(({ id }) => id === vmId)?.host;
      sim.externalChanges.migrate(vmId, here === 'pve2' ? 'pve3' : 'pve2');
      return undefined;
    },
    stop({ sim }, vmId) {
      sim.externalChanges.stop(vmId);
      return undefined;
    },
    copy({ sim }, vmId) {
      sim.externalChanges.copy(vmId, COPY);
      return COPY;
    },
    delete({ sim }, vmId) {
      sim.externalChanges.delete(vmId);
      return undefined;
    },
    reuse({ sim }, vmId) {
      sim.externalChanges.copy(TEMPLATE, SPARE);
      sim.externalChanges.delete(vmId);
      sim.externalChanges.copy(SPARE, vmId);
      sim.externalChanges.delete(SPARE);
      sim.externalChanges.rename(vmId, 'unmanaged');
      return vmId;
    },
    /** Replaces an owned VM by its copy, with the same VM id and description. */
    replace({ sim }, vmId) {
      sim.externalChanges.copy(vmId, SPARE);
      sim.externalChanges.delete(vmId);
      sim.externalChanges.copy(SPARE, vmId);
      sim.externalChanges.delete(SPARE);
      return vmId;
    },
  };

interface ChangeCell {
  readonly change: string;
  readonly pass: number;
}

interface UnmanagedVm {
  vmId: number | undefined;
  snapshot: string;
}

export interface ExternalChangeOptions {
  readonly seed: number;
  readonly only: string | undefined;
  readonly limit: number;
  readonly tally: Tally;
  readonly print: (text: string) => void;
}

export async function runExternalChangeMatrix(
  source: SourceName,
  options: ExternalChangeOptions,
): Promise<void> {
  const { seed, only, limit, tally, print } = options;
  const passes = await countPasses(source);
  const recorded = Object.keys(EXTERNAL_CHANGES).flatMap((change) =>
    Array.from({ length: passes }, (_, at): ChangeCell => ({ change, pass: at + 1 })),
  );
  const cells = sampleEvenly(recorded, limit, seed);
  let late = 0;
  for (const cell of cells) {
    const name = `external change ${source} ${JSON.stringify(cell)}`;
    if (only !== undefined && !name.includes(only)) continue;
    const problems = await runCell(source, cell).catch((error: unknown) => [String(error)]);
    if (problems === 'too late') late += 1;
    else tally.count(name, problems);
  }
  print(
    `external changes, ${source}: ${recorded.length} cells recorded, ${cells.length} sampled, ${late} too late`,
  );
}

async function countPasses(source: SourceName): Promise<number> {
  const site = createSite(source);
  let passes = 0;
  observeCalls(site, (call) => {
    if (call === PASS_START_CALL) passes += 1;
  });
  await scaleUpAndDown(site);
  return passes;
}

async function scaleUpAndDown(site: Site): Promise<void> {
  const fleet = createProcess(site);
  for (const targetSize of [1, 0]) {
    await fleet.scaleTo('workers', targetSize, REASON);
    await reconcileUntilIdle(site, fleet);
  }
  // A machine whose VM is missing ends after a while.
  await site.clock.advance(10 * MINUTE_MS);
  await reconcileUntilIdle(site, fleet);
}

async function runCell(
  source: SourceName,
  cell: ChangeCell,
): Promise<readonly string[] | 'too late'> {
  const site = createSite(source);
  const unmanaged: UnmanagedVm = { vmId: undefined, snapshot: '' };
  let pass = 0;
  let isDone = false;
  observeCalls(site, (call) => {
    if (call === PASS_START_CALL) pass += 1;
    if (call !== PASS_START_CALL || isDone || pass < cell.pass) return;
    isDone = applyChange(site, cell, unmanaged);
  });
  await scaleUpAndDown(site);
  if (!isDone) return 'too late';
  const left = readInventory(site);
  const expected = unmanaged.vmId === undefined ? [] : [unmanaged.vmId];
  const open = (await readMachines(site.store)).filter(
    ({ phase }) => !['gone', 'failed'].includes(phase),
  );
  const facts: Readonly<Record<string, boolean>> = {
    'only the unmanaged VM is left': left.vms.join() === expected.join(),
    'the unmanaged VM is unchanged': snapshotVm(site, unmanaged.vmId) === unmanaged.snapshot,
    'no ISO is left': left.isos.length === 0,
    'no other disk is left': left.disks.every((vmId) => vmId === unmanaged.vmId),
    'no address is in use': (await countAddressesInUse(site.store)) === 0,
    'every machine has ended': open.length === 0,
  };
  const wrong = Object.entries(facts).filter(([, holds]) => !holds);
  if (wrong.length === 0) return [];
  return [
    ...wrong.map(([fact]) => `does not hold: ${fact}`),
    JSON.stringify({ left, unmanaged, open }),
  ];
}

/** Waits until no task works on the VM, so that the effects of the change are distinguishable. */
function applyChange(site: Site, { change }: ChangeCell, unmanaged: UnmanagedVm): boolean {
  const { vms, runningTasks } = site.sim.inspect();
  const ours = vms.find(({ id }) => id < TEMPLATE);
  if (ours === undefined || ours.config['lock'] !== undefined || runningTasks.length > 0) {
    return false;
  }
  // Before its first start a VM has no identity that a copy would lack.
  if (change === 'replace' && !ours.running) return false;
  unmanaged.vmId = EXTERNAL_CHANGES[change]?.(site, ours.id);
  unmanaged.snapshot = snapshotVm(site, unmanaged.vmId);
  return true;
}

function snapshotVm({ sim }: Site, vmId: number | undefined): string {
  if (vmId === undefined) return '';
  const { vms, volumes } = sim.inspect();
  return JSON.stringify([
    vms.find(({ id }) => id === vmId),
    volumes.filter((volume) => volume.vmId === vmId).map(({ id }) => id),
  ]);
}
