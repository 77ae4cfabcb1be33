// SPDX-License-Identifier: Apache-2.0
// The fault matrix: each call to Proxmox that a run makes, combined with each fault. Each run ends converged, or failed
// with a reason and a clean site.
import { describe, expect, it } from 'vitest';
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
  SOURCES,
  type SourceName,
} from './simulated-site.ts';

const MINUTE_MS = 60_000;

const CALL_FAULTS: readonly Omit<FaultRule, 'endpoint'>[] = [
  { kind: 'error', status: 500, message: 'something went wrong' },
  { kind: 'error', status: 401, message: 'No ticket' },
  { kind: 'error', status: 403, message: 'Permission check failed' },
  { kind: 'error', status: 596, message: 'Connection timed out' },
  { kind: 'error', status: 500, message: "can't lock file '/var/lock/x' - got timeout" },
  { kind: 'delay', delayMs: 20_000 },
  { kind: 'delay', delayMs: 5 * MINUTE_MS },
  { kind: 'response-delayed', delayMs: MINUTE_MS },
  { kind: 'hang' },
  { kind: 'response-lost' },
  { kind: 'host-down' },
  { kind: 'host-down-after' },
];

const CREATE_CALLS = ['POST /nodes/{node}/qemu', 'POST /nodes/{node}/qemu/{vmid}/clone'];

async function listCalls(source: SourceName): Promise<readonly string[]> {
  const site = createSite(source);
  await scaleUpAndDown(site);
  const names = [...site.sim.inspect().requests.keys()].map((key) => key.replace(/ \d+$/, ''));
  return [...new Set(names)];
}

async function scaleUpAndDown(site: Site): Promise<void> {
  const fleet = createProcess(site);
  await fleet.scaleTo('workers', 1, REASON);
  await reconcileUntilIdle(site, fleet);
  await fleet.scaleTo('workers', 0, REASON);
  await reconcileUntilIdle(site, fleet);
}

/** Scales to one machine and back to zero; the fault is active while scaling in the given direction. */
async function runWithFault(
  source: SourceName,
  fault: FaultRule,
  when: 'up' | 'down',
): Promise<void> {
  const site = createSite(source);
  const fleet = createProcess(site);
  // A failed host comes back after a while.
  const revive = async () => {
    await site.clock.advance(2 * MINUTE_MS);
    for (const host of ['pve1', 'pve2', 'pve3']) site.sim.externalChanges.hostUp(host);
    if (/^host-down|^task-killed|^no-worker/.test(fault.kind)) deleteLockedVms(site);
  };
  if (when === 'up') site.sim.faults.add(fault);
  await fleet.scaleTo('workers', 1, REASON);
  await reconcileUntilIdle(site, fleet, { maxPasses: 60 });
  // Each worker that cannot be started may leave another locked VM.
  for (let left = fault.kind === 'no-worker' ? (fault.times ?? 1) : 1; left > 0; left -= 1) {
    await revive();
    await reconcileUntilIdle(site, fleet);
  }
  await expectSettled(site);
  if (when === 'down') site.sim.faults.add(fault);
  await fleet.scaleTo('workers', 0, REASON);
  await reconcileUntilIdle(site, fleet, { maxPasses: 60 });
  await revive();
  await reconcileUntilIdle(site, fleet);
  expect(readInventory(site)).toEqual({ vms: [], machines: [], isos: [], disks: [] });
  expect(await countAddressesInUse(site.store)).toBe(0);
}

/** A host or worker that failed while it created a VM leaves it locked: only an administrator can delete it. */
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

/** Every machine is ready with its VM, or failed with a reason and no leftovers. */
async function expectSettled(site: Site): Promise<void> {
  const machines = await readMachines(site.store);
  const ready = machines.filter(({ phase }) => phase === 'ready').map(({ id }) => id);
  const failed = machines.filter(({ phase }) => phase === 'failed');
  expect(ready.length + failed.length, 'settled').toBe(machines.length);
  for (const { failure } of failed) expect(failure?.message).toMatch(/\w/);
  expect(readInventory(site).machines).toEqual(ready);
  expect(readInventory(site).isos).toEqual([]);
  expect(readInventory(site).disks).toHaveLength(ready.length);
  expect(await countAddressesInUse(site.store)).toBe(ready.length);
}

describe.each(Object.keys(SOURCES) as SourceName[])('a fleet with machines from %s', (source) => {
  it.each(['up', 'down'] as const)(
    'scaling %s: every machine settles after a fault in any call',
    async (when) => {
      for (const endpoint of await listCalls(source)) {
        for (const kind of CALL_FAULTS) {
          const fault = { ...kind, endpoint };
          await runWithFault(source, fault, when).catch((cause: unknown) => {
            throw new Error(`${when}: ${JSON.stringify(fault)}`, { cause });
          });
        }
      }
    },
  );

  it('every machine settles after a task that fails once or every time', async () => {
    const tasks = ['qmcreate', 'qmclone', 'imgcopy', 'resize', 'qmstart', 'download'];
    for (const taskType of tasks) {
      for (const end of [
        { kind: 'task-fails', times: 1 },
        { kind: 'task-fails', times: 50 },
        { kind: 'task-killed', times: 1 },
      ] as const) {
        const fault = { ...end, taskType, delayMs: 1_000 };
        await runWithFault(source, fault, 'up').catch((cause: unknown) => {
          throw new Error(JSON.stringify(fault), { cause });
        });
      }
    }
    for (const taskType of ['qmshutdown', 'qmdestroy']) {
      await runWithFault(source, { kind: 'task-fails', taskType, times: 2 }, 'down');
    }
  });

  it('every machine settles after a worker that could not be started', async () => {
    const tasks = {
      up: ['qmcreate', 'qmclone', 'imgcopy', 'resize', 'qmstart', 'download', 'imgdel'],
      down: ['qmshutdown', 'qmstop', 'qmdestroy', 'imgdel'],
    };
    for (const when of ['up', 'down'] as const) {
      for (const taskType of tasks[when]) {
        for (const times of [1, 3]) {
          const fault = { kind: 'no-worker', taskType, times } as const;
          await runWithFault(source, fault, when).catch((cause: unknown) => {
            throw new Error(`${when}: ${JSON.stringify(fault)}`, { cause });
          });
        }
      }
    }
  });
});

describe.each(['image', 'full clone'] as const)(
  'a host that fails while it creates a VM from %s',
  (source) => {
    it('leaves a locked VM; the journal says how to delete it, then the machine ends', async () => {
      const site = createSite(source);
      const fleet = createProcess(site);
      for (const endpoint of CREATE_CALLS)
        site.sim.faults.add({ kind: 'host-down-after', endpoint });
      await fleet.scaleTo('workers', 1, REASON);
      await reconcileUntilIdle(site, fleet, { maxPasses: 30 });
      for (const host of ['pve1', 'pve2', 'pve3']) site.sim.externalChanges.hostUp(host);
      await reconcileUntilIdle(site, fleet, { maxPasses: 600 });
      const [machine] = await readMachines(site.store);
      expect(machine).toMatchObject({
        phase: 'deleting',
        failure: { code: 'PROVISION_TIMED_OUT' },
      });
      const entries = await site.store.journal.read({ machine: machine?.id ?? '' });
      const [entry] = entries.filter(({ reason }) => reason === 'HalfMadeVm');
      const [vmId] = readInventory(site).vms;
      expect(entry?.message).toContain(`qm unlock ${vmId}`);
      site.sim.externalChanges.delete(vmId ?? 0);
      await reconcileUntilIdle(site, fleet);
      expect((await readMachines(site.store))[0]?.phase).toBe('failed');
      expect(readInventory(site)).toEqual({ vms: [], machines: [], isos: [], disks: [] });
    });
  },
);
