// SPDX-License-Identifier: Apache-2.0
// Adoption after the records were lost: machines keep their state, and no address is assigned twice.
import { describe, expect, it } from 'vitest';
import { formatMarker, type Marker } from '../../model/marker.ts';
import { Unauthorized } from '../../ports/errors.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import {
  aPool,
  CLUSTER,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import {
  addressesInUse,
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  phasesIn,
  REASON,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const SETTINGS = someSettings([aPool({ network: STATIC_NETWORK })]);
const REFUSAL = new Unauthorized('PERMISSION_MISSING', 'permission denied');

/** A new process with an empty store. */
function withEmptyStore(testFleet: TestFleet): TestFleet {
  const store = new MemoryStore({ clock: testFleet.clock });
  return {
    ...testFleet,
    store,
    fleet: aFleet({ ...testFleet, store, settings: SETTINGS, seed: 2 }),
  };
}

async function testFleetWith(count: number): Promise<TestFleet> {
  const testFleet = aTestFleet(SETTINGS);
  await testFleet.fleet.scaleTo('workers', count, REASON);
  await untilAtRest(testFleet.fleet, testFleet);
  return testFleet;
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

describe('adoptVms: a VM whose marker says that it was ready', () => {
  it('is adopted as ready, even when guest queries and starts fail', async () => {
    const testFleet = withEmptyStore(await testFleetWith(2));
    for (let n = 0; n < 5; n += 1) {
      testFleet.hypervisor.failNext('guestIsUp', REFUSAL);
      testFleet.hypervisor.failNext('startVm', REFUSAL);
    }
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { phase: 'ready' },
      { phase: 'ready' },
    ]);
    expect(await addressesInUse(testFleet.store)).toEqual(['10.10.10.11', '10.10.10.12']);
  });

  it('is adopted as ready and not started when a person has stopped it', async () => {
    const before = await testFleetWith(1);
    const [vmId = 0] = existingResources(before.hypervisor).vms;
    const vm = before.hypervisor.state.vms.get(vmId);
    if (vm !== undefined) vm.startedAt = undefined;
    const testFleet = withEmptyStore(before);
    testFleet.hypervisor.failNext('startVm', REFUSAL);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
  });

  it('is not adopted when its SMBIOS UUID is of another machine', async () => {
    const before = await testFleetWith(1);
    const [vmId = 0] = existingResources(before.hypervisor).vms;
    const vm = before.hypervisor.state.vms.get(vmId);
    if (vm !== undefined) vm.startedAt = undefined;
    vm?.options.set('smbios1', `uuid=${aMachineId(9)}`);
    const testFleet = withEmptyStore(before);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toEqual([]);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([vmId]);
  });
});

describe('adoptVms: a VM with our marker and the SMBIOS UUID of another VM', () => {
  it.each([
    ['running', false],
    ['stopped', true],
  ] as const)(
    'while it is %s, is adopted: %s (a clone starts only with our UUID)',
    async (power, isAdopted) => {
      const testFleet = aTestFleet(someSettings([aPool({ source: templateSource() })]));
      putVm(testFleet, markerFor(1_280), power);
      testFleet.hypervisor.state.vms.get(1_280)?.options.set('smbios1', `uuid=${aMachineId(9)}`);
      await runPasses(testFleet, 30);
      expect(await phasesIn(testFleet.store)).toEqual(isAdopted ? ['ready'] : []);
      expect(existingResources(testFleet.hypervisor).vms).toEqual([1_280]);
    },
  );
});

describe('adoptVms: static addresses', () => {
  it('are not assigned while a VM that may use them cannot be read', async () => {
    const testFleet = withEmptyStore(await testFleetWith(3));
    testFleet.hypervisor.setOnline('pve2', false);
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await runPasses(testFleet, 30);
    const phases = await phasesIn(testFleet.store);
    expect(phases.toSorted()).toEqual(['ready', 'ready', 'requested', 'requested']);
    const recorded = await testFleet.store.journal.read();
    expect(recorded.some(({ message }) => /pve2 cannot be read/.test(message))).toBe(true);

    testFleet.hypervisor.setOnline('pve2', true);
    await untilAtRest(testFleet.fleet, testFleet);
    const machines = await machinesIn(testFleet.store);
    expect(machines.map(({ phase }) => phase)).toEqual(Array(5).fill('ready'));
    const addresses = machines.flatMap(({ placement }) => placement?.addresses ?? []);
    expect(new Set(addresses).size).toBe(5);
  });

  it('do not delay machines with DHCP while a VM cannot be read', async () => {
    const settings = someSettings();
    const testFleet = aTestFleet(settings);
    putVm(testFleet, markerFor(1_280), 'running');
    testFleet.hypervisor.setOnline('pve1', false);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 60);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
  });

  it('a VM that never ran is deleted when its address was assigned to another machine meanwhile', async () => {
    const testFleet = await testFleetWith(1);
    putVm(testFleet, markerFor(1_280, { addresses: ['10.10.10.11/24'] }), 'stopped');
    await untilAtRest(testFleet.fleet, testFleet);
    const machines = await machinesIn(testFleet.store);
    expect(machines.map(({ phase }) => phase).toSorted()).toEqual(['gone', 'ready']);
    expect(existingResources(testFleet.hypervisor).vms).not.toContain(1_280);
    expect(await addressesInUse(testFleet.store)).toEqual(['10.10.10.11']);
  });

  it('two running machines with the same address are both kept', async () => {
    const testFleet = await testFleetWith(1);
    const marker = markerFor(1_280, { addresses: ['10.10.10.11/24'], readySinceSeconds: 2 });
    putVm(testFleet, marker, 'running');
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { phase: 'ready' },
      { phase: 'ready' },
    ]);
    expect(existingResources(testFleet.hypervisor).vms).toContain(1_280);
  });
});
