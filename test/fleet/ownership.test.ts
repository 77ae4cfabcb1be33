// SPDX-License-Identifier: Apache-2.0
// Unmanaged VMs are never changed, however similar they are to owned VMs; owned VMs stay owned after a move.
import { describe, expect, it } from 'vitest';
import { aPool, someSettings } from '../../src/fleet/testing/settings.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import {
  createProcess,
  createSettings,
  createSite,
  REASON,
  readInventory,
  readMachines,
  reconcileUntilIdle,
  type Site,
} from './simulated-site.ts';

async function createReadyMachine(site: Site) {
  const fleet = createProcess(site);
  await fleet.scaleTo('workers', 1, REASON);
  await reconcileUntilIdle(site, fleet);
  const [machine] = await readMachines(site.store);
  const vmId = machine?.placement?.vmId ?? 0;
  expect(machine?.phase).toBe('ready');
  return { fleet, vmId, id: machine!.id };
}

function findVm(site: Site, vmId: number) {
  return site.sim.inspect().vms.find(({ id }) => id === vmId);
}

describe('ownership', () => {
  it('two clusters with the same site, VM id range and pool name do not affect each other', async () => {
    const site = createSite('image');
    const other: Site = {
      ...site,
      store: new MemoryStore({ clock: site.clock }),
      settings: createSettings('image', { cluster: 'c0ffee00-0000-4000-8000-000000000002' }),
    };
    const ownFleet = createProcess(site, { seed: 1 });
    const otherFleet = createProcess(other, { seed: 2 });
    await ownFleet.scaleTo('workers', 2, REASON);
    await otherFleet.scaleTo('workers', 2, REASON);
    await reconcileUntilIdle(site, ownFleet);
    await reconcileUntilIdle(other, otherFleet);
    expect(readInventory(site).vms).toHaveLength(4);
    expect(await readMachines(site.store)).toHaveLength(2);
    const all = [...(await readMachines(site.store)), ...(await readMachines(other.store))];
    expect(new Set(all.flatMap(({ placement }) => placement?.addresses)).size).toBe(4);
    await ownFleet.scaleTo('workers', 0, REASON);
    await reconcileUntilIdle(site, ownFleet);
    const left = (await readMachines(other.store)).map(({ id }) => id).sort();
    expect(readInventory(site).machines.toSorted()).toEqual(left);
    await reconcileUntilIdle(other, otherFleet);
    expect((await readMachines(other.store)).map(({ phase }) => phase)).toEqual(['ready', 'ready']);
  });

  it("a user's copy of a machine is unmanaged, with the database and without it", async () => {
    const site = createSite('image');
    const { fleet, vmId } = await createReadyMachine(site);
    site.sim.externalChanges.copy(vmId, 1_280);
    const before = findVm(site, 1_280);
    await fleet.scaleTo('workers', 0, REASON);
    await reconcileUntilIdle(site, fleet);
    expect(readInventory(site).vms).toEqual([1_280]);
    const fresh = { ...site, store: new MemoryStore({ clock: site.clock }) };
    await reconcileUntilIdle(fresh, createProcess(fresh, { seed: 9 }));
    expect(await readMachines(fresh.store)).toEqual([]);
    expect(findVm(site, 1_280)).toEqual(before);
  });

  it('a VM that reuses the id of a machine is not changed, and the machine ends', async () => {
    const site = createSite('image');
    const { fleet, vmId, id } = await createReadyMachine(site);
    site.sim.externalChanges.copy(9_000, 1_290);
    site.sim.externalChanges.delete(vmId);
    site.sim.externalChanges.copy(1_290, vmId);
    site.sim.externalChanges.setOption(vmId, 'template', undefined);
    site.sim.externalChanges.rename(vmId, 'unmanaged');
    const before = findVm(site, vmId);
    await fleet.remove([id], REASON);
    await reconcileUntilIdle(site, fleet);
    expect(findVm(site, vmId)).toEqual(before);
    expect((await readMachines(site.store))[0]?.phase).toBe('gone');
    const [refusal] = (await site.store.journal.read({ machine: id })).filter(
      ({ reason }) => reason === 'VmNotOurs',
    );
    expect(refusal?.message).toContain('left alone');
  });

  it('a copy under the VM id of its machine is unmanaged, also after the machine has ended', async () => {
    const site = createSite('image');
    const { fleet, vmId, id } = await createReadyMachine(site);
    site.sim.externalChanges.copy(vmId, 1_290);
    site.sim.externalChanges.delete(vmId);
    site.sim.externalChanges.copy(1_290, vmId);
    site.sim.externalChanges.delete(1_290);
    const before = findVm(site, vmId);
    await fleet.remove([id], REASON);
    await reconcileUntilIdle(site, fleet);
    await reconcileUntilIdle(site, createProcess(site, { seed: 9 }));
    expect((await readMachines(site.store))[0]?.phase).toBe('gone');
    expect(findVm(site, vmId)).toEqual(before);
    expect(await site.settled(fleet.orphans())).toMatchObject([
      { kind: 'vm-left-alone', what: `VM ${vmId}`, fixable: false },
    ]);
  });

  it('a machine takes another VM id when its own is already in use', async () => {
    const site = createSite('image');
    const fleet = createProcess(site);
    await fleet.scaleTo('workers', 1, REASON);
    const isPlaced = async () =>
      (await readMachines(site.store)).some(({ phase }) => phase === 'placed');
    while (!(await isPlaced())) await reconcileUntilIdle(site, fleet, { maxPasses: 1 });
    const first = (await readMachines(site.store))[0]?.placement?.vmId ?? 0;
    site.sim.externalChanges.copy(9_000, first);
    site.sim.externalChanges.setOption(first, 'template', undefined);
    await reconcileUntilIdle(site, fleet);
    const [machine] = await readMachines(site.store);
    expect(machine?.phase).toBe('ready');
    expect(machine?.placement?.vmId).not.toBe(first);
    expect(readInventory(site).vms).toHaveLength(2);
    expect(findVm(site, first)?.config['description']).toBeUndefined();
  });

  it('a VM that was migrated, renamed and retagged is still owned', async () => {
    const site = createSite('image');
    const { fleet, vmId, id } = await createReadyMachine(site);
    const host = findVm(site, vmId)?.host === 'pve2' ? 'pve3' : 'pve2';
    site.sim.externalChanges.migrate(vmId, host);
    site.sim.externalChanges.rename(vmId, 'my-favourite');
    site.sim.externalChanges.retag(vmId, ['mine']);
    const description = findVm(site, vmId)?.config['description'] ?? '';
    site.sim.externalChanges.describe(vmId, `# Notes\n\n${description}\nkeep the line above`);
    await reconcileUntilIdle(site, fleet);
    const [machine] = await readMachines(site.store);
    expect(machine?.placement?.host).toBe(host);
    await fleet.remove([id], REASON);
    await reconcileUntilIdle(site, fleet);
    expect(readInventory(site)).toEqual({ vms: [], machines: [], isos: [], disks: [] });
  });

  it('a VM with a damaged marker is not changed, and is reported as an orphan', async () => {
    const site = createSite('image');
    const { vmId } = await createReadyMachine(site);
    site.sim.externalChanges.describe(vmId, 'pvescaler/v1 cluster=');
    const before = findVm(site, vmId);
    const fresh = { ...site, store: new MemoryStore({ clock: site.clock }) };
    const fleet = createProcess(fresh, { seed: 9 });
    await reconcileUntilIdle(fresh, fleet);
    expect(await readMachines(fresh.store)).toEqual([]);
    expect(findVm(site, vmId)).toEqual(before);
    const orphans = await site.settled(fleet.orphans());
    expect(orphans.map(({ kind }) => kind)).toEqual(['damaged-marker']);
  });
});

describe('adoption', () => {
  it('keeps machines of a removed pool, which can still be deleted', async () => {
    const site = createSite('image');
    const { vmId, id } = await createReadyMachine(site);
    const before = findVm(site, vmId);
    const settings = someSettings([aPool({ name: 'others' })], { regions: site.settings.regions });
    const fresh = { ...site, settings, store: new MemoryStore({ clock: site.clock }) };
    const fleet = createProcess(fresh, { seed: 9 });
    await reconcileUntilIdle(fresh, fleet);
    expect((await readMachines(fresh.store)).map(({ phase }) => phase)).toEqual(['ready']);
    expect(findVm(site, vmId)).toEqual(before);
    await fleet.remove([id], REASON);
    await reconcileUntilIdle(fresh, fleet);
    expect(readInventory(site).vms).toEqual([]);
  });

  it('a machine whose VM disappeared is reported, and ends after a while', async () => {
    const site = createSite('image');
    const { fleet, vmId } = await createReadyMachine(site);
    site.sim.externalChanges.delete(vmId);
    await reconcileUntilIdle(site, fleet);
    expect((await readMachines(site.store))[0]?.phase).toBe('ready');
    expect((await site.settled(fleet.orphans())).map(({ kind }) => kind)).toEqual([
      'record-without-vm',
    ]);
    await site.clock.advance(6 * 60_000);
    await reconcileUntilIdle(site, fleet);
    expect((await readMachines(site.store))[0]?.phase).toBe('gone');
  });
});
