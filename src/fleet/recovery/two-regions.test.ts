// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { readMarker } from '../../model/marker.ts';
import { MemoryHypervisor } from '../../ports/fakes/memory-hypervisor.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { Hypervisor } from '../../ports/hypervisor.ts';
import { createFleet, type Fleet } from '../fleet.ts';
import { aHost, aPool, aRegion, REGION, someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  onePass,
  REASON,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

/** Three ready machines in one region. */
async function aFleetWithMachines(): Promise<TestFleet> {
  const testFleet = aTestFleet();
  await testFleet.fleet.scaleTo('workers', 3, REASON);
  await untilAtRest(testFleet.fleet, testFleet);
  expect(existingResources(testFleet.hypervisor).vms).toHaveLength(3);
  return testFleet;
}

/** The same Proxmox under another name. */
function underAnotherName(
  hypervisor: MemoryHypervisor,
  { hasCertificates = true } = {},
): Hypervisor {
  return new Proxy<Hypervisor>(hypervisor, {
    get: (target, name) => {
      if (name === 'region') return 'other';
      if (name === 'view') return async () => ({ ...(await target.view()), region: 'other' });
      if (name === 'hostFingerprints' && !hasCertificates) return () => Promise.resolve(new Map());
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}

function withSecondRegion(testFleet: TestFleet, other: Hypervisor, first?: Hypervisor): Fleet {
  const { clock, store, hypervisor } = testFleet;
  return createFleet({
    clock,
    store,
    hypervisors: new Map<string, Hypervisor>([
      ['other', other],
      [REGION, first ?? hypervisor],
    ]),
    random: new SeededRandom(11),
    settings: someSettings([aPool({ regions: [REGION, 'other'] })], {
      regions: { other: aRegion({ name: 'other' }), [REGION]: aRegion() },
    }),
  });
}

describe('one Proxmox under two names', () => {
  it('is refused in both regions, and no VM is touched', async () => {
    const testFleet = await aFleetWithMachines();
    const before = existingResources(testFleet.hypervisor);
    const fleet = withSecondRegion(testFleet, underAnotherName(testFleet.hypervisor));
    const { stale } = await onePass(fleet, testFleet);
    await runPasses({ ...testFleet, fleet }, 30);
    expect(existingResources(testFleet.hypervisor)).toEqual(before);
    const why =
      'regions other and memory are the same Proxmox (host pve1 has the same certificate in both): remove one of them from the config';
    expect(stale).toEqual({ other: why, [REGION]: why });
    await expect(fleet.orphans()).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: why });
  });

  it('is noticed by the SMBIOS UUIDs of its VMs if no certificate is known', async () => {
    const testFleet = await aFleetWithMachines();
    const other = underAnotherName(testFleet.hypervisor, { hasCertificates: false });
    const { stale } = await onePass(withSecondRegion(testFleet, other), testFleet);
    expect(stale['other']).toMatch(/VM \d+ has the same SMBIOS UUID in both/);
  });
});

describe('two regions with hosts of the same names', () => {
  function anotherProxmox({ clock }: TestFleet): MemoryHypervisor {
    return new MemoryHypervisor({
      region: 'other',
      clock,
      random: new SeededRandom(77),
      hosts: [aHost('pve1'), aHost('pve2')],
      taskMs: 1_500,
      bootMs: 3_000,
    });
  }

  it('are both used if they are different', async () => {
    const testFleet = await aFleetWithMachines();
    const fleet = withSecondRegion(testFleet, anotherProxmox(testFleet));
    expect((await onePass(fleet, testFleet)).stale).toEqual({});
  });

  it('leave a ready VM alone that was restored in or migrated to the other region', async () => {
    const testFleet = await aFleetWithMachines();
    const other = anotherProxmox(testFleet);
    for (const vm of testFleet.hypervisor.state.vms.values()) other.state.vms.set(vm.vmId, vm);
    const before = existingResources(other);
    const fleet = withSecondRegion(testFleet, other);
    await runPasses({ ...testFleet, fleet }, 30);
    expect(existingResources(other)).toEqual(before);
    expect(await journalReasonsIn(testFleet.store)).toContain('VmNotOurs');
    expect(await machinesIn(testFleet.store)).toHaveLength(3);
  });

  it('leave it alone also if its marker was written by a version without regions', async () => {
    const testFleet = await aFleetWithMachines();
    const other = anotherProxmox(testFleet);
    for (const vm of testFleet.hypervisor.state.vms.values()) {
      const options = new Map(vm.options);
      const description = (options.get('description') ?? '').replace(/ region=\S+/, '');
      other.state.vms.set(vm.vmId, { ...vm, options: options.set('description', description) });
    }
    const before = existingResources(other);
    const fleet = withSecondRegion(testFleet, other);
    await runPasses({ ...testFleet, fleet }, 30);
    expect(existingResources(other)).toEqual(before);
  });
});

describe('a marker without a region', () => {
  it('does not make a VM ours whose machine is in another region, even if it was never ready', async () => {
    const testFleet = await aFleetWithMachines();
    const other = new MemoryHypervisor({
      region: 'other',
      clock: testFleet.clock,
      random: new SeededRandom(77),
      hosts: [aHost('elsewhere')],
    });
    for (const vm of testFleet.hypervisor.state.vms.values()) {
      const description = (vm.options.get('description') ?? '').replace(/ (region|ready)=\S+/g, '');
      const options = new Map(vm.options).set('description', description);
      const copy = { ...vm, vmId: vm.vmId, host: 'elsewhere', options, startedAt: undefined };
      other.state.vms.set(vm.vmId, copy);
    }
    const before = existingResources(other);
    await runPasses({ ...testFleet, fleet: withSecondRegion(testFleet, other) }, 30);
    expect(existingResources(other)).toEqual(before);
    expect(await journalReasonsIn(testFleet.store)).toContain('VmNotOurs');
  });

  it('gets the region together with the mark of its deletion', async () => {
    const testFleet = await aFleetWithMachines();
    const { hypervisor } = testFleet;
    for (const { options } of hypervisor.state.vms.values()) {
      options.set('description', (options.get('description') ?? '').replace(/ region=\S+/, ''));
    }
    const marked: string[] = [];
    hypervisor.onCall = ({ method, vmId = 0 }) => {
      const description = hypervisor.state.vms.get(vmId)?.options.get('description') ?? '';
      if (method === 'destroyVm') marked.push(description);
    };
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(marked).toHaveLength(3);
    for (const description of marked) expect(description).toMatch(/region=memory/);
  });

  it('gets the region of its record', async () => {
    const testFleet = await aFleetWithMachines();
    for (const [vmId, vm] of testFleet.hypervisor.state.vms) {
      const description = (vm.options.get('description') ?? '').replace(/ region=\S+/, '');
      const options = new Map(vm.options).set('description', description);
      testFleet.hypervisor.state.vms.set(vmId, { ...vm, options });
    }
    for (const current of await testFleet.store.machines.list()) {
      const { hasRegionInMarker, ...placement } = current.value.placement!;
      expect(hasRegionInMarker).toBe(true);
      await testFleet.store.machines.replace(current, { ...current.value, placement });
    }
    await runPasses(testFleet, 3);
    const regions = [...testFleet.hypervisor.state.vms.values()]
      .map(({ options }) => readMarker(options.get('description')))
      .flatMap((reading) => (reading.kind === 'marked' ? reading.marker.region : []));
    expect(regions).toEqual([REGION, REGION, REGION]);
  });
});
