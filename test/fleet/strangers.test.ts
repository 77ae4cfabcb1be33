// SPDX-License-Identifier: Apache-2.0
// What is not ours is never touched, however much it looks like ours; what is ours stays ours wherever it goes.
import { describe, expect, it } from 'vitest';
import { aPool, someSettings } from '../../src/fleet/testing/settings.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import {
  aProcess,
  aSite,
  machinesIn,
  remains,
  type Site,
  siteSettings,
  untilAtRest,
  WHY,
} from './simulated-site.ts';

async function withOneReady(site: Site) {
  const fleet = aProcess(site);
  await fleet.scaleTo('workers', 1, WHY);
  await untilAtRest(site, fleet);
  const [machine] = await machinesIn(site.store);
  const vmId = machine?.placement?.vmId ?? 0;
  expect(machine?.phase).toBe('ready');
  return { fleet, vmId, id: machine!.id };
}

function configOf(site: Site, vmId: number) {
  return site.sim.inspect().vms.find(({ id }) => id === vmId);
}

describe('strangers', () => {
  it('two clusters share a site, a range and a pool name, and never meet', async () => {
    const site = aSite('image');
    const other: Site = {
      ...site,
      store: new MemoryStore({ clock: site.clock }),
      settings: siteSettings('image', { cluster: 'c0ffee00-0000-4000-8000-000000000002' }),
    };
    const ours = aProcess(site, { seed: 1 });
    const theirs = aProcess(other, { seed: 2 });
    await ours.scaleTo('workers', 2, WHY);
    await theirs.scaleTo('workers', 2, WHY);
    await untilAtRest(site, ours);
    await untilAtRest(other, theirs);
    expect(remains(site).vms).toHaveLength(4);
    expect(await machinesIn(site.store)).toHaveLength(2);
    const all = [...(await machinesIn(site.store)), ...(await machinesIn(other.store))];
    expect(new Set(all.flatMap(({ placement }) => placement?.addresses)).size).toBe(4);
    await ours.scaleTo('workers', 0, WHY);
    await untilAtRest(site, ours);
    const left = (await machinesIn(other.store)).map(({ id }) => id).sort();
    expect(remains(site).machines.toSorted()).toEqual(left);
    await untilAtRest(other, theirs);
    expect((await machinesIn(other.store)).map(({ phase }) => phase)).toEqual(['ready', 'ready']);
  });

  it("a person's copy is not ours, with the database and without it", async () => {
    const site = aSite('image');
    const { fleet, vmId } = await withOneReady(site);
    site.sim.externalChanges.copy(vmId, 1_280);
    const before = configOf(site, 1_280);
    await fleet.scaleTo('workers', 0, WHY);
    await untilAtRest(site, fleet);
    expect(remains(site).vms).toEqual([1_280]);
    const fresh = { ...site, store: new MemoryStore({ clock: site.clock }) };
    await untilAtRest(fresh, aProcess(fresh, { seed: 9 }));
    expect(await machinesIn(fresh.store)).toEqual([]);
    expect(configOf(site, 1_280)).toEqual(before);
  });

  it('an id that was reused is left alone, and the machine ends without it', async () => {
    const site = aSite('image');
    const { fleet, vmId, id } = await withOneReady(site);
    site.sim.externalChanges.copy(9_000, 1_290);
    site.sim.externalChanges.delete(vmId);
    site.sim.externalChanges.copy(1_290, vmId);
    site.sim.externalChanges.setOption(vmId, 'template', undefined);
    site.sim.externalChanges.rename(vmId, 'somebody-elses');
    const before = configOf(site, vmId);
    await fleet.remove([id], WHY);
    await untilAtRest(site, fleet);
    expect(configOf(site, vmId)).toEqual(before);
    expect((await machinesIn(site.store))[0]?.phase).toBe('gone');
    const [refusal] = (await site.store.journal.read({ machine: id })).filter(
      ({ reason }) => reason === 'VmNotOurs',
    );
    expect(refusal?.message).toContain('left alone');
  });

  it('a copy in the very place of ours is not ours, also when the machine is over', async () => {
    const site = aSite('image');
    const { fleet, vmId, id } = await withOneReady(site);
    site.sim.externalChanges.copy(vmId, 1_290);
    site.sim.externalChanges.delete(vmId);
    site.sim.externalChanges.copy(1_290, vmId);
    site.sim.externalChanges.delete(1_290);
    const before = configOf(site, vmId);
    await fleet.remove([id], WHY);
    await untilAtRest(site, fleet);
    await untilAtRest(site, aProcess(site, { seed: 9 }));
    expect((await machinesIn(site.store))[0]?.phase).toBe('gone');
    expect(configOf(site, vmId)).toEqual(before);
    expect(await site.settled(fleet.orphans())).toEqual([]);
  });

  it('an id that somebody takes first is given up for another', async () => {
    const site = aSite('image');
    const fleet = aProcess(site);
    await fleet.scaleTo('workers', 1, WHY);
    const isPlaced = async () =>
      (await machinesIn(site.store)).some(({ phase }) => phase === 'placed');
    while (!(await isPlaced())) await untilAtRest(site, fleet, { rounds: 1 });
    const first = (await machinesIn(site.store))[0]?.placement?.vmId ?? 0;
    site.sim.externalChanges.copy(9_000, first);
    site.sim.externalChanges.setOption(first, 'template', undefined);
    await untilAtRest(site, fleet);
    const [machine] = await machinesIn(site.store);
    expect(machine?.phase).toBe('ready');
    expect(machine?.placement?.vmId).not.toBe(first);
    expect(remains(site).vms).toHaveLength(2);
    expect(configOf(site, first)?.config['description']).toBeUndefined();
  });

  it('a VM of ours that was moved, renamed and retagged is still ours', async () => {
    const site = aSite('image');
    const { fleet, vmId, id } = await withOneReady(site);
    const host = configOf(site, vmId)?.host === 'pve2' ? 'pve3' : 'pve2';
    site.sim.externalChanges.migrate(vmId, host);
    site.sim.externalChanges.rename(vmId, 'my-favourite');
    site.sim.externalChanges.retag(vmId, ['mine']);
    const description = configOf(site, vmId)?.config['description'] ?? '';
    site.sim.externalChanges.describe(vmId, `# Notes\n\n${description}\nkeep the line above`);
    await untilAtRest(site, fleet);
    const [machine] = await machinesIn(site.store);
    expect(machine?.placement?.host).toBe(host);
    await fleet.remove([id], WHY);
    await untilAtRest(site, fleet);
    expect(remains(site)).toEqual({ vms: [], machines: [], isos: [], disks: [] });
  });

  it('a marker that was damaged protects its VM', async () => {
    const site = aSite('image');
    const { vmId } = await withOneReady(site);
    site.sim.externalChanges.describe(vmId, 'pvescaler/v1 cluster=');
    const before = configOf(site, vmId);
    const fresh = { ...site, store: new MemoryStore({ clock: site.clock }) };
    const fleet = aProcess(fresh, { seed: 9 });
    await untilAtRest(fresh, fleet);
    expect(await machinesIn(fresh.store)).toEqual([]);
    expect(configOf(site, vmId)).toEqual(before);
    const orphans = await site.settled(fleet.orphans());
    expect(orphans.map(({ kind }) => kind)).toEqual(['damaged-marker']);
  });
});

describe('adoption', () => {
  it('of machines whose pool left the config touches nothing but lets them be deleted', async () => {
    const site = aSite('image');
    const { vmId, id } = await withOneReady(site);
    const before = configOf(site, vmId);
    const settings = someSettings([aPool({ name: 'others' })], { regions: site.settings.regions });
    const fresh = { ...site, settings, store: new MemoryStore({ clock: site.clock }) };
    const fleet = aProcess(fresh, { seed: 9 });
    await untilAtRest(fresh, fleet);
    expect((await machinesIn(fresh.store)).map(({ phase }) => phase)).toEqual(['ready']);
    expect(configOf(site, vmId)).toEqual(before);
    await fleet.remove([id], WHY);
    await untilAtRest(fresh, fleet);
    expect(remains(site).vms).toEqual([]);
  });

  it('a VM that vanished is noticed, and its machine ends after a while', async () => {
    const site = aSite('image');
    const { fleet, vmId } = await withOneReady(site);
    site.sim.externalChanges.delete(vmId);
    await untilAtRest(site, fleet);
    expect((await machinesIn(site.store))[0]?.phase).toBe('ready');
    expect((await site.settled(fleet.orphans())).map(({ kind }) => kind)).toEqual([
      'record-without-vm',
    ]);
    await site.clock.advance(6 * 60_000);
    await untilAtRest(site, fleet);
    expect((await machinesIn(site.store))[0]?.phase).toBe('gone');
  });
});
