// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { mayHaveVm } from '../../model/machine.ts';
import { formatMarker } from '../../model/marker.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { FleetSettings } from '../context/settings.ts';
import { aPool, CLUSTER, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  machinesIn,
  onePass,
  REASON,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const settings = someSettings([aPool({ network: STATIC_NETWORK })]);

/** A VM outside the id range of the region, without the tag. */
function putUnmanagedVm(
  { hypervisor }: TestFleet,
  vmId: number,
  address: string | undefined,
): void {
  hypervisor.state.vms.set(vmId, {
    vmId,
    host: 'pve2',
    options: new Map([
      ['name', `theirs-${vmId}`],
      ...(address === undefined ? [] : [['ipconfig0', `ip=${address}/24,gw=10.10.10.1`] as const]),
    ]),
    revision: 1,
    startedAt: undefined,
  });
}

function withNodes(fleetSettings: FleetSettings, nodes: readonly ClusterNode[]): TestFleet {
  return aTestFleet(fleetSettings, (clock) => {
    const cluster = new MemoryCluster({ clock, random: new SeededRandom(6) });
    for (const node of nodes) cluster.state.putNode(node);
    return cluster;
  });
}

/** Of machines that are not over. */
async function addressesOf(testFleet: TestFleet): Promise<readonly string[]> {
  const machines = (await machinesIn(testFleet.store)).filter(({ phase }) => mayHaveVm(phase));
  return machines.flatMap(({ placement }) => placement?.addresses ?? []).toSorted();
}

function readsOf({ hypervisor }: TestFleet, vmId: number): number {
  return hypervisor.calls.filter(({ method, vmId: of }) => method === 'vmConfig' && of === vmId)
    .length;
}

describe('takenAddresses', () => {
  it('an address in the configuration of an unmanaged VM is not assigned', async () => {
    const testFleet = aTestFleet(settings);
    putUnmanagedVm(testFleet, 100, '10.10.10.11');
    putUnmanagedVm(testFleet, 101, undefined);
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesOf(testFleet)).toEqual(['10.10.10.12/24', '10.10.10.13/24']);
  });

  it('an address in the marker of a machine of another cluster is not assigned', async () => {
    const testFleet = aTestFleet(settings);
    putUnmanagedVm(testFleet, 100, undefined);
    const marker = formatMarker({
      cluster: 'c0ffee00-0000-4000-8000-000000000002',
      pool: 'workers',
      machine: aMachineId(3),
      vmId: 100,
      createdAtSeconds: 1,
      addresses: ['10.10.10.11/24'],
    });
    testFleet.hypervisor.state.vms.get(100)?.options.set('description', marker);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesOf(testFleet)).toEqual(['10.10.10.12/24']);
  });

  it('an address in the configuration of an unmanaged VM is no headroom', async () => {
    const testFleet = aTestFleet(settings);
    putUnmanagedVm(testFleet, 100, '10.10.10.11');
    await onePass(testFleet.fleet, testFleet);
    expect(testFleet.fleet.forecast.headroom('workers')?.machines).toBe(5);
  });

  it('the configuration of a VM is read once, and again when its summary changes', async () => {
    const testFleet = aTestFleet(settings);
    putUnmanagedVm(testFleet, 100, '10.10.10.11');
    for (const size of [1, 2]) {
      await testFleet.fleet.scaleTo('workers', size, REASON);
      await onePass(testFleet.fleet, testFleet);
    }
    expect(readsOf(testFleet, 100)).toBe(1);
    testFleet.hypervisor.state.vms.get(100)?.options.set('name', 'renamed');
    await testFleet.fleet.scaleTo('workers', 3, REASON);
    await onePass(testFleet.fleet, testFleet);
    expect(readsOf(testFleet, 100)).toBe(2);
  });

  it('the address of a VM that was left alone is not assigned while the VM exists', async () => {
    const testFleet = aTestFleet(settings);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    const { vmId } = machine!.placement!;
    const vm = testFleet.hypervisor.state.vms.get(vmId)!;
    const options = new Map(vm.options).set('description', 'edited by a person');
    testFleet.hypervisor.state.vms.set(vmId, { ...vm, options });
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.hypervisor.state.vms.has(vmId)).toBe(true);
    await testFleet.clock.advance(24 * 60 * 60_000);
    await testFleet.fleet.scaleTo('workers', 5, REASON);
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesOf(testFleet)).not.toContain('10.10.10.11/24');

    testFleet.hypervisor.state.vms.delete(vmId);
    await untilAtRest(testFleet.fleet, testFleet);
    await testFleet.clock.advance(60 * 60_000);
    await testFleet.fleet.scaleTo('workers', 6, REASON);
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesOf(testFleet)).toContain('10.10.10.11/24');
  });

  it('the address of an adopted VM is not assigned after the other machine with it is gone', async () => {
    const testFleet = aTestFleet(settings);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const marker = formatMarker({
      cluster: CLUSTER,
      pool: 'workers',
      machine: aMachineId(3),
      vmId: 1_290,
      createdAtSeconds: 1,
      readySinceSeconds: 2,
      addresses: ['10.10.10.11/24'],
    });
    const vm = testFleet.hypervisor.state.vms.get(1_250)!;
    const options = new Map(vm.options)
      .set('description', marker)
      .set('name', 'second')
      .set('smbios1', `uuid=${aMachineId(3)}`);
    testFleet.hypervisor.state.vms.set(1_290, { ...vm, vmId: 1_290, options });
    await onePass(testFleet.fleet, testFleet);
    const first = (await machinesIn(testFleet.store)).find((one) => one.placement?.vmId === 1_250);
    await testFleet.fleet.remove([first!.id], REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    await testFleet.clock.advance(24 * 60 * 60_000);
    await testFleet.fleet.scaleTo('workers', 3, REASON);
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesOf(testFleet)).toEqual([
      '10.10.10.11/24',
      '10.10.10.12/24',
      '10.10.10.13/24',
    ]);
  });

  it('no configuration is read for pools with DHCP', async () => {
    const testFleet = aTestFleet();
    putUnmanagedVm(testFleet, 100, '10.10.10.11');
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await onePass(testFleet.fleet, testFleet);
    expect(readsOf(testFleet, 100)).toBe(0);
  });

  it('an address of a Node is not assigned', async () => {
    const testFleet = withNodes(settings, [
      aClusterNode({ addresses: ['10.10.10.11', 'fd00::1'] }),
    ]);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesOf(testFleet)).toEqual(['10.10.10.12/24']);
  });

  it('an address of a Node is not assigned while Kubernetes cannot be read', async () => {
    const testFleet = withNodes(settings, [aClusterNode({ addresses: ['10.10.10.11'] })]);
    await onePass(testFleet.fleet, testFleet);
    testFleet.cluster?.disconnect();
    await testFleet.clock.advance(10 * 60_000);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesOf(testFleet)).toEqual(['10.10.10.12/24']);
  });
});

describe('an unmanaged VM whose configuration has not been read yet', () => {
  it('delays machines with static addresses: it may have any of them', async () => {
    const testFleet = aTestFleet(settings);
    const { hypervisor, fleet, clock, store } = testFleet;
    putUnmanagedVm(testFleet, 100, '10.10.10.11');
    const vmConfig = hypervisor.vmConfig.bind(hypervisor);
    let answer: (() => void) | undefined;
    hypervisor.vmConfig = (vm, options) =>
      vm.vmId !== 100
        ? vmConfig(vm, options)
        : new Promise((resolve) => {
            answer = () => resolve(vmConfig(vm, options));
          });
    await fleet.scaleTo('workers', 1, REASON);
    const finish = new AbortController();
    const { signal } = new AbortController();
    const driving = fleet.runDriver({ signal, finish: finish.signal });
    for (let second = 0; second < 10; second += 1) await clock.advance(1_000);
    expect(await addressesOf(testFleet)).toEqual([]);
    const recorded = await store.journal.read();
    expect(recorded.filter(({ reason }) => reason === 'VIEW_STALE')).toMatchObject([
      { message: expect.stringContaining('VM 100 on host pve2 cannot be read') },
    ]);
    answer?.();
    for (let second = 0; second < 30; second += 1) await clock.advance(1_000);
    expect(await addressesOf(testFleet)).toEqual(['10.10.10.12/24']);
    finish.abort();
    await advanceUntilSettled(clock, driving);
  });
});
