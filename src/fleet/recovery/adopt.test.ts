// SPDX-License-Identifier: Apache-2.0
// The records are lost: what is there is found again as it was, and nothing is given out twice meanwhile.
import { describe, expect, it } from 'vitest';
import { formatMarker, type Marker } from '../../model/marker.ts';
import { Unauthorized } from '../../ports/errors.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { aPool, CLUSTER, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  addressesInUse,
  aFleet,
  aTestFleet,
  leftovers,
  machinesIn,
  onePass,
  type TestFleet,
  untilAtRest,
  WHY,
} from '../testing/test-fleet.ts';

const SETTINGS = someSettings([aPool({ network: STATIC_NETWORK })]);
const REFUSAL = new Unauthorized('PERMISSION_MISSING', 'not today');

/** Another process, which knows nothing. */
function amnesia(bench: TestFleet): TestFleet {
  const store = new MemoryStore({ clock: bench.clock });
  return { ...bench, store, fleet: aFleet({ ...bench, store, settings: SETTINGS, seed: 2 }) };
}

async function benchWith(count: number): Promise<TestFleet> {
  const bench = aTestFleet(SETTINGS);
  await bench.fleet.scaleTo('workers', count, WHY);
  await untilAtRest(bench.fleet, bench);
  return bench;
}

function markerFor(vmId: number, overrides: Partial<Marker> = {}): string {
  return formatMarker({
    cluster: CLUSTER,
    pool: 'workers',
    machine: aMachineId(3),
    vmId,
    createdAtSeconds: 1,
    addresses: [],
    ...overrides,
  });
}

function putVm(
  { hypervisor, clock }: TestFleet,
  description: string,
  state: 'stopped' | 'running',
) {
  hypervisor.state.vms.set(1_280, {
    vmId: 1_280,
    host: 'pve1',
    options: new Map([
      ['name', 'late'],
      ['description', description],
      ['smbios1', `uuid=${aMachineId(3)}`],
      ['scsi0', 'local-lvm:vm-1280-disk-0,size=20480M'],
    ]),
    revision: 1,
    startedAt: state === 'running' ? clock.now() : undefined,
  });
}

describe('a machine that has been ready', () => {
  it('is ready again, whatever goes wrong then', async () => {
    const bench = amnesia(await benchWith(2));
    for (let n = 0; n < 5; n += 1) {
      bench.hypervisor.failNext('guestIsUp', REFUSAL);
      bench.hypervisor.failNext('startVm', REFUSAL);
    }
    await untilAtRest(bench.fleet, bench);
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'ready' }, { phase: 'ready' }]);
    expect(await addressesInUse(bench.store)).toEqual(['10.10.10.11', '10.10.10.12']);
  });

  it('stays as somebody left it when he switched it off', async () => {
    const before = await benchWith(1);
    const [vmId = 0] = leftovers(before.hypervisor).vms;
    const vm = before.hypervisor.state.vms.get(vmId);
    if (vm !== undefined) vm.startedAt = undefined;
    const bench = amnesia(before);
    bench.hypervisor.failNext('startVm', REFUSAL);
    await untilAtRest(bench.fleet, bench);
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'ready' }]);
  });

  it('is not the one with its words and another identity', async () => {
    const before = await benchWith(1);
    const [vmId = 0] = leftovers(before.hypervisor).vms;
    const vm = before.hypervisor.state.vms.get(vmId);
    if (vm !== undefined) vm.startedAt = undefined;
    vm?.options.set('smbios1', `uuid=${aMachineId(9)}`);
    const bench = amnesia(before);
    await untilAtRest(bench.fleet, bench);
    expect(await machinesIn(bench.store)).toEqual([]);
    expect(leftovers(bench.hypervisor).vms).toEqual([vmId]);
  });
});

describe('addresses', () => {
  it('are not given out while a VM cannot be read that may have them', async () => {
    const bench = amnesia(await benchWith(3));
    bench.hypervisor.setOnline('pve2', false);
    await bench.fleet.scaleTo('workers', 2, WHY);
    for (let round = 0; round < 30; round += 1) await onePass(bench.fleet, bench);
    const phases = (await machinesIn(bench.store)).map(({ phase }) => phase);
    expect(phases.toSorted()).toEqual(['ready', 'ready', 'requested', 'requested']);
    const told = await bench.store.journal.read();
    expect(told.some(({ message }) => /pve2 cannot be read/.test(message))).toBe(true);

    bench.hypervisor.setOnline('pve2', true);
    await untilAtRest(bench.fleet, bench);
    const machines = await machinesIn(bench.store);
    expect(machines.map(({ phase }) => phase)).toEqual(Array(5).fill('ready'));
    const addresses = machines.flatMap(({ placement }) => placement?.addresses ?? []);
    expect(new Set(addresses).size).toBe(5);
  });

  it('do not keep machines waiting that ask for one by DHCP', async () => {
    const settings = someSettings();
    const bench = aTestFleet(settings);
    putVm(bench, markerFor(1_280), 'running');
    bench.hypervisor.setOnline('pve1', false);
    await bench.fleet.scaleTo('workers', 1, WHY);
    for (let round = 0; round < 60; round += 1) await onePass(bench.fleet, bench);
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'ready' }]);
  });

  it('that were given away since cost a machine its life that has never run', async () => {
    const bench = await benchWith(1);
    putVm(bench, markerFor(1_280, { addresses: ['10.10.10.11/24'] }), 'stopped');
    await untilAtRest(bench.fleet, bench);
    const machines = await machinesIn(bench.store);
    expect(machines.map(({ phase }) => phase).toSorted()).toEqual(['gone', 'ready']);
    expect(leftovers(bench.hypervisor).vms).not.toContain(1_280);
    expect(await addressesInUse(bench.store)).toEqual(['10.10.10.11']);
  });

  it('that two have who are at work are left to a person', async () => {
    const bench = await benchWith(1);
    const marker = markerFor(1_280, { addresses: ['10.10.10.11/24'], readySinceSeconds: 2 });
    putVm(bench, marker, 'running');
    await untilAtRest(bench.fleet, bench);
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'ready' }, { phase: 'ready' }]);
    expect(leftovers(bench.hypervisor).vms).toContain(1_280);
  });
});
