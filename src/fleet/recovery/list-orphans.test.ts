// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { formatMarker } from '../../model/marker.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { aPool, CLUSTER, someSettings } from '../testing/settings.ts';
import {
  aFleet,
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

function putVm({ hypervisor }: TestFleet, vmId: number, options: Record<string, string>): void {
  hypervisor.state.vms.set(vmId, {
    vmId,
    host: 'pve1',
    options: new Map(Object.entries(options)),
    revision: 1,
    startedAt: undefined,
  });
}

function markerFor(vmId: number, machine: number): string {
  return formatMarker({
    cluster: CLUSTER,
    pool: 'workers',
    machine: aMachineId(machine),
    vmId,
    createdAtSeconds: 1,
    addresses: [],
  });
}

describe('VMs of this cluster without a matching record', () => {
  it('are listed and adopted if their machine has no record', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, 1_260, {
      name: 'worker-x',
      description: markerFor(1_260, 3),
      smbios1: `uuid=${aMachineId(3)}`,
      cores: '2',
      scsi0: 'local-lvm:vm-1260-disk-0,size=3072M',
    });
    expect(await testFleet.fleet.orphans()).toMatchObject([{ kind: 'vm-without-record' }]);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { id: aMachineId(3), phase: 'ready' },
    ]);
    expect(await testFleet.fleet.orphans()).toEqual([]);
  });

  it('are removed if their machine has another VM', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    const marker = markerFor(1_270, 3).replace(aMachineId(3), machine!.id);
    putVm(testFleet, 1_270, { name: 'late', description: marker, scsi0: 'local-lvm:x,size=1M' });
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([machine?.placement?.vmId]);
  });

  it('that are still locked by their creation are listed, left alone, and delay the minimum', async () => {
    const testFleet = aTestFleet(
      someSettings([aPool({ limits: { ...aPool().limits, min: 1, max: 2 } })]),
    );
    putVm(testFleet, 1_280, { lock: 'clone' });
    const { undecided } = await onePass(testFleet.fleet, testFleet);
    expect(undecided).toHaveLength(1);
    expect(await machinesIn(testFleet.store)).toEqual([]);
    expect(await testFleet.fleet.orphans()).toMatchObject([
      { kind: 'half-made-vm', fixable: false },
    ]);
    testFleet.hypervisor.state.vms.delete(1_280);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
  });
});

describe('machines of a pool that was removed from the config', () => {
  it('are kept, listed with the command that deletes them, and named once in the journal', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const fleet = aFleet({
      ...testFleet,
      settings: someSettings([aPool({ name: 'others' })]),
      seed: 9,
    });
    await runPasses({ ...testFleet, fleet }, 3);
    const machines = await machinesIn(testFleet.store);
    const names = machines.map(({ placement }) => placement!.name);
    expect(machines.map(({ phase }) => phase)).toEqual(['ready', 'ready']);
    const { pools, removedPools } = await fleet.status();
    expect(pools.map(({ name }) => name)).toEqual(['others']);
    expect(removedPools).toEqual([
      { name: 'workers', machines: expect.arrayContaining([...machines]) },
    ]);
    const orphans = await fleet.orphans();
    expect(orphans.map(({ kind }) => kind)).toEqual([
      'machine-without-pool',
      'machine-without-pool',
    ]);
    expect(orphans.map(({ commands }) => commands)).toEqual(
      expect.arrayContaining(names.map((name) => [`pvescaler machine delete ${name}`])),
    );
    const reasons = await journalReasonsIn(testFleet.store);
    expect(reasons.filter((reason) => reason === 'PoolNotInConfig')).toHaveLength(1);
    await fleet.remove(
      machines.map(({ id }) => id),
      REASON,
    );
    await untilAtRest(fleet, testFleet);
    expect(await fleet.orphans()).toEqual([]);
    expect((await fleet.status()).removedPools).toEqual([]);
  });
});
