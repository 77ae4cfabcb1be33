// SPDX-License-Identifier: Apache-2.0
// The fault matrix: each call to Proxmox that a run makes, times each way in which it can go wrong. It ends
// converged, or failed with a reason and a clean site; never in between.
import { describe, expect, it } from 'vitest';
import type { FaultRule } from '../../src/sim/proxmox/index.ts';
import {
  addressesInUse,
  aProcess,
  aSite,
  machinesIn,
  remains,
  type Site,
  SOURCES,
  type SourceName,
  untilAtRest,
  WHY,
} from './simulated-site.ts';

const MINUTE_MS = 60_000;

/** What may happen to one call. */
const KINDS: readonly Omit<FaultRule, 'endpoint'>[] = [
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

const MAKING = ['POST /nodes/{node}/qemu', 'POST /nodes/{node}/qemu/{vmid}/clone'];

async function callsOf(source: SourceName): Promise<readonly string[]> {
  const site = aSite(source);
  await upAndDown(site);
  const names = [...site.sim.inspect().requests.keys()].map((key) => key.replace(/ \d+$/, ''));
  return [...new Set(names)];
}

async function upAndDown(site: Site): Promise<void> {
  const fleet = aProcess(site);
  await fleet.scaleTo('workers', 1, WHY);
  await untilAtRest(site, fleet);
  await fleet.scaleTo('workers', 0, WHY);
  await untilAtRest(site, fleet);
}

/** One machine is asked for, and then none, with the fault armed in the phase given. */
async function suffered(source: SourceName, fault: FaultRule, when: 'up' | 'down'): Promise<void> {
  const site = aSite(source);
  const fleet = aProcess(site);
  // A host that died comes back after a while.
  const revive = async () => {
    await site.clock.advance(2 * MINUTE_MS);
    for (const host of ['pve1', 'pve2', 'pve3']) site.sim.externalChanges.hostUp(host);
    if (/^host-down|^task-killed/.test(fault.kind)) removeHalfMade(site);
  };
  if (when === 'up') site.sim.faults.add(fault);
  await fleet.scaleTo('workers', 1, WHY);
  await untilAtRest(site, fleet, { rounds: 60 });
  await revive();
  await untilAtRest(site, fleet);
  await expectSettled(site);
  if (when === 'down') site.sim.faults.add(fault);
  await fleet.scaleTo('workers', 0, WHY);
  await untilAtRest(site, fleet, { rounds: 60 });
  await revive();
  await untilAtRest(site, fleet);
  expect(remains(site)).toEqual({ vms: [], machines: [], isos: [], disks: [] });
  expect(await addressesInUse(site.store)).toBe(0);
}

/** A host or worker that died while it made a VM left one with a lock: only a person can remove it, and its disks. */
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

/** Ready with its VM, or failed with a reason and nothing left. */
async function expectSettled(site: Site): Promise<void> {
  const machines = await machinesIn(site.store);
  const ready = machines.filter(({ phase }) => phase === 'ready').map(({ id }) => id);
  const failed = machines.filter(({ phase }) => phase === 'failed');
  expect(ready.length + failed.length, 'settled').toBe(machines.length);
  for (const { failure } of failed) expect(failure?.message).toMatch(/\w/);
  expect(remains(site).machines).toEqual(ready);
  expect(remains(site).isos).toEqual([]);
  expect(remains(site).disks).toHaveLength(ready.length);
  expect(await addressesInUse(site.store)).toBe(ready.length);
}

describe.each(Object.keys(SOURCES) as SourceName[])('a fault, source %s', (source) => {
  it.each(['up', 'down'] as const)(
    'scaling %s: in any call ends settled',
    async (when) => {
      for (const endpoint of await callsOf(source)) {
        for (const kind of KINDS) {
          const fault = { ...kind, endpoint };
          await suffered(source, fault, when).catch((cause: unknown) => {
            throw new Error(`${when}: ${JSON.stringify(fault)}`, { cause });
          });
        }
      }
    },
    300_000,
  );

  it('in any task ends settled, once and for ever', async () => {
    const tasks = ['qmcreate', 'qmclone', 'imgcopy', 'resize', 'qmstart', 'download'];
    for (const taskType of tasks) {
      for (const end of [
        { kind: 'task-fails', times: 1 },
        { kind: 'task-fails', times: 50 },
        { kind: 'task-killed', times: 1 },
      ] as const) {
        const fault = { ...end, taskType, delayMs: 1_000 };
        await suffered(source, fault, 'up').catch((cause: unknown) => {
          throw new Error(JSON.stringify(fault), { cause });
        });
      }
    }
    for (const taskType of ['qmshutdown', 'qmdestroy']) {
      await suffered(source, { kind: 'task-fails', taskType, times: 2 }, 'down');
    }
  }, 120_000);
});

describe.each(['image', 'full clone'] as const)(
  'a host that dies while it makes a VM, source %s',
  (source) => {
    it('leaves a lock that a person is told about; then the machine ends', async () => {
      const site = aSite(source);
      const fleet = aProcess(site);
      for (const endpoint of MAKING) site.sim.faults.add({ kind: 'host-down-after', endpoint });
      await fleet.scaleTo('workers', 1, WHY);
      await untilAtRest(site, fleet, { rounds: 30 });
      for (const host of ['pve1', 'pve2', 'pve3']) site.sim.externalChanges.hostUp(host);
      await untilAtRest(site, fleet, { rounds: 600 });
      const [machine] = await machinesIn(site.store);
      expect(machine).toMatchObject({
        phase: 'deleting',
        failure: { code: 'PROVISION_TIMED_OUT' },
      });
      const told = await site.store.journal.read({ machine: machine?.id ?? '' });
      const [entry] = told.filter(({ reason }) => reason === 'HalfMadeVm');
      const [vmId] = remains(site).vms;
      expect(entry?.message).toContain(`qm unlock ${vmId}`);
      site.sim.externalChanges.delete(vmId ?? 0);
      await untilAtRest(site, fleet);
      expect((await machinesIn(site.store))[0]?.phase).toBe('failed');
      expect(remains(site)).toEqual({ vms: [], machines: [], isos: [], disks: [] });
    });
  },
);
