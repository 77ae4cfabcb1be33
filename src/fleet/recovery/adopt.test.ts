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
  journalReasonsIn,
  machinesIn,
  onePass,
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

  it.each(['ready', 'deleting'] as const)('is recorded as %s from the first', async (phase) => {
    const testFleet = aTestFleet(SETTINGS);
    const marks = {
      readySinceSeconds: 5,
      ...(phase === 'deleting' && { deletingSinceSeconds: 6 }),
    };
    putVm(testFleet, markerFor(1_280, marks), 'running');
    await onePass(testFleet.fleet, testFleet);
    const adopted = (await testFleet.store.journal.read())[0];
    expect(adopted).toMatchObject({
      reason: 'MachineAdopted',
      message: expect.stringContaining(`in phase ${phase}`),
    });
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
  it('is not adopted if it was started since the view was read', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ source: templateSource() })]));
    putVm(testFleet, markerFor(1_280), 'stopped');
    const vm = testFleet.hypervisor.state.vms.get(1_280)!;
    vm.options.set('smbios1', `uuid=${aMachineId(9)}`);
    testFleet.hypervisor.onCall = ({ method }) => {
      if (method === 'vmState') vm.startedAt = testFleet.clock.monotonic();
    };
    await runPasses(testFleet, 3);
    expect(await machinesIn(testFleet.store)).toEqual([]);
    expect(vm.options.get('smbios1')).toBe(`uuid=${aMachineId(9)}`);
  });

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

  it('while it is stopped in a pool with an image, is left alone and reported', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, markerFor(1_280), 'stopped');
    testFleet.hypervisor.state.vms.get(1_280)?.options.set('smbios1', `uuid=${aMachineId(9)}`);
    await runPasses(testFleet, 30);
    expect(await machinesIn(testFleet.store)).toEqual([]);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([1_280]);
    expect(await testFleet.store.journal.read()).toContainEqual(
      expect.objectContaining({
        reason: 'VmNotOurs',
        message: expect.stringContaining('VM 1280 is left alone'),
      }),
    );
  });
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

  it('are those of a machine when it is adopted, so that no other gets them', async () => {
    const testFleet = aTestFleet(SETTINGS);
    await onePass(testFleet.fleet, testFleet);
    putVm(testFleet, markerFor(1_280, { addresses: ['10.10.10.13/24'] }), 'running');
    await onePass(testFleet.fleet, testFleet);
    await testFleet.fleet.request('workers', 3, REASON);
    await onePass(testFleet.fleet, testFleet);
    expect((await addressesInUse(testFleet.store)).toSorted()).toEqual([
      '10.10.10.11',
      '10.10.10.12',
      '10.10.10.13',
      '10.10.10.14',
    ]);
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

describe('adoptVms: which VMs are inspected', () => {
  /** A stopped VM of a machine without a record. */
  function putVmAt(testFleet: TestFleet, vmId: number, options: Record<string, string> = {}) {
    putVm(testFleet, markerFor(vmId), 'stopped');
    const vm = testFleet.hypervisor.state.vms.get(1_280);
    testFleet.hypervisor.state.vms.delete(1_280);
    if (vm === undefined) throw new Error('no VM was put');
    const all = new Map([...vm.options, ...Object.entries(options)]);
    testFleet.hypervisor.state.vms.set(vmId, { ...vm, vmId, options: all });
  }

  it.each([
    ['the first of the range', 1_250, {}, true],
    ['the last of the range', 1_299, {}, true],
    ['below the range', 1_249, {}, false],
    ['above the range', 1_300, {}, false],
    ['outside the range, with our tag', 4_000, { tags: 'other;pvescaler' }, true],
    ['in the range, a template', 1_260, { template: '1' }, false],
  ] as const)('a VM with our marker is adopted: %s', async (...[, vmId, options, isAdopted]) => {
    const testFleet = aTestFleet();
    putVmAt(testFleet, vmId, options);
    await onePass(testFleet.fleet, testFleet);
    const adopted = (await machinesIn(testFleet.store)).map(({ placement }) => placement?.vmId);
    expect(adopted).toEqual(isAdopted ? [vmId] : []);
    expect(testFleet.hypervisor.state.vms.has(vmId)).toBe(true);
  });

  it('an unmanaged VM is read once, and again when it changes', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, 'a VM of a person', 'running');
    const reads = () =>
      testFleet.hypervisor.calls.filter(
        ({ method, vmId }) => method === 'vmConfig' && vmId === 1_280,
      ).length;
    await runPasses(testFleet, 5);
    expect(reads()).toBe(1);
    testFleet.hypervisor.state.vms.get(1_280)?.options.set('tags', 'changed');
    await runPasses(testFleet, 5);
    expect(reads()).toBe(2);
    expect(await machinesIn(testFleet.store)).toEqual([]);
  });

  it('a VM without a name, which may be a new clone, is read in every pass', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, '', 'stopped');
    testFleet.hypervisor.state.vms.get(1_280)?.options.delete('name');
    await runPasses(testFleet, 3);
    const reads = testFleet.hypervisor.calls.filter(({ vmId }) => vmId === 1_280);
    expect(reads.length).toBeGreaterThanOrEqual(3);
  });

  it('a VM that cannot be read leaves its region undecided, and one that is gone does not', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, '', 'stopped');
    testFleet.hypervisor.failNext('vmConfig', REFUSAL);
    expect((await onePass(testFleet.fleet, testFleet)).undecided).toEqual(['memory']);
    expect((await onePass(testFleet.fleet, testFleet)).undecided).toEqual([]);
    testFleet.hypervisor.state.vms.get(1_280)?.options.set('tags', 'changed');
    testFleet.hypervisor.onCall = ({ method }) => {
      if (method === 'vmConfig') testFleet.hypervisor.state.vms.delete(1_280);
    };
    expect((await onePass(testFleet.fleet, testFleet)).undecided).toEqual([]);
  });
});

describe('adoptVms: what is recorded', () => {
  it('an adopted machine has the size, address and time of its VM', async () => {
    const testFleet = aTestFleet(SETTINGS);
    const addresses = ['10.10.10.13/24'];
    putVm(testFleet, markerFor(1_280, { addresses, createdAtSeconds: 7 }), 'running');
    const options = testFleet.hypervisor.state.vms.get(1_280)?.options;
    options?.set('cores', '3').set('memory', '4096');
    await onePass(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      {
        id: aMachineId(3),
        pool: 'workers',
        phase: 'booting',
        requestedAt: 7_000,
        size: { cpu: 3, memoryBytes: 4_096 * 2 ** 20, diskBytes: 20 * 2 ** 30 },
        placement: {
          region: 'memory',
          host: 'pve1',
          vmId: 1_280,
          name: 'late',
          diskStorage: 'local-lvm',
          addresses,
          hasRegionInMarker: false,
        },
        configured: true,
        attempts: 0,
      },
    ]);
    expect(await addressesInUse(testFleet.store)).toEqual(['10.10.10.13']);
    const recorded = await testFleet.store.journal.read();
    expect(recorded.filter(({ reason }) => reason === 'MachineAdopted')).toMatchObject([
      { kind: 'saw', subject: { machine: aMachineId(3), host: 'pve1' }, numbers: { vmId: 1_280 } },
    ]);
  });

  it.each([
    ['has the seed of its pool, which is deleted once it is ready', aPool(), true],
    [
      'has none if its pool has none',
      aPool({ source: { kind: 'netboot' }, seed: undefined }),
      false,
    ],
  ])('an adopted machine %s', async (_what, pool, hasSeed) => {
    const testFleet = aTestFleet(someSettings([pool]));
    putVm(testFleet, markerFor(1_280), 'stopped');
    await onePass(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine?.seedVolume !== undefined).toBe(hasSeed);
  });

  it('a VM that is marked as being deleted continues to be deleted', async () => {
    const testFleet = aTestFleet();
    const marker = markerFor(1_280, { readySinceSeconds: 2, deletingSinceSeconds: 3 });
    putVm(testFleet, marker, 'running');
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
  });

  it('a machine of a pool that is not in the config is left as it is', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, markerFor(1_280, { pool: 'removed' }), 'stopped');
    await runPasses(testFleet, 10);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ pool: 'removed', phase: 'ready' }]);
    const changed = testFleet.hypervisor.calls.map(({ method }) => method);
    expect(changed).not.toContain('startVm');
  });

  it.each([
    ['a damaged marker', (marker: string) => marker.slice(0, -8), 'MarkerDamaged'],
    ['the marker of another VM id', () => markerFor(1_281), 'VmNotOurs'],
  ])('a VM with %s is left alone and reported once', async (_what, edit, reason) => {
    const testFleet = aTestFleet();
    putVm(testFleet, edit(markerFor(1_280)), 'stopped');
    await runPasses(testFleet, 5);
    expect(await machinesIn(testFleet.store)).toEqual([]);
    const recorded = await testFleet.store.journal.read();
    expect(recorded.filter((entry) => entry.reason === reason)).toMatchObject([
      { kind: 'saw', subject: { region: 'memory', host: 'pve1' } },
    ]);
  });

  it('a VM of another cluster is left alone and not reported', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, markerFor(1_280, { cluster: 'another' }), 'stopped');
    await runPasses(testFleet, 5);
    expect(await machinesIn(testFleet.store)).toEqual([]);
    expect(await testFleet.store.journal.read()).toEqual([]);
  });
});

describe('two VMs with the marker of one machine', () => {
  function put(testFleet: TestFleet, at: readonly [number, string], marks: Partial<Marker>) {
    const [vmId, host] = at;
    testFleet.hypervisor.state.vms.set(vmId, {
      vmId,
      host,
      options: new Map([
        ['name', `vm-${vmId}`],
        ['description', markerFor(vmId, marks)],
        ['smbios1', `uuid=${aMachineId(3)}`],
        ['scsi0', 'local-lvm:x,size=3G'],
      ]),
      revision: 1,
      startedAt: undefined,
    });
  }

  it('of which both were ready: one is adopted, and the other is left alone', async () => {
    const testFleet = aTestFleet(someSettings());
    put(testFleet, [1_280, 'pve1'], { readySinceSeconds: 5 });
    put(testFleet, [1_281, 'pve2'], { readySinceSeconds: 6 });
    await untilAtRest(testFleet.fleet, testFleet);
    const reasons = await journalReasonsIn(testFleet.store);
    expect(reasons.filter((reason) => reason === 'MachineAdopted')).toHaveLength(1);
    expect(reasons).toContain('DuplicateVm');
    expect(reasons).not.toContain('RECORD_EXISTS');
    expect(existingResources(testFleet.hypervisor).vms).toEqual([1_280, 1_281]);
  });

  it.each([
    [1_280, 1_281],
    [1_281, 1_280],
  ])('the ready VM %i stays the machine, and the other, %i, is removed', async (ready, other) => {
    const testFleet = aTestFleet(someSettings());
    put(testFleet, [ready, 'pve1'], { readySinceSeconds: 5 });
    put(testFleet, [other, 'pve2'], {});
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { id: aMachineId(3), phase: 'ready', placement: { vmId: ready } },
    ]);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([ready]);
  });
});
