// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { formatMarker } from '../../model/marker.ts';
import { NotFound, Unauthorized, Unreachable } from '../../ports/errors.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { aJoiningTestFleet, aReadyMachine } from '../testing/joining-test-fleet.ts';
import { aPool, CLUSTER, REGION, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  onePass,
  REASON,
  reachPhase,
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

  it('are listed as VMs that will be adopted, also if they are ready and their record is older', async () => {
    const testFleet = aTestFleet();
    const { id } = await reachPhase(testFleet, 'ready');
    const { placement: _, ...record } = (await testFleet.store.machines.get(id))!.value;
    const seen = await testFleet.store.machines.get(id);
    await testFleet.store.machines.replace(seen!, { ...record, phase: 'requested' });
    expect(await testFleet.fleet.orphans()).toMatchObject([
      { kind: 'vm-without-record', fixable: true },
    ]);
  });

  it('are removed if their machine has another VM', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    const marker = markerFor(1_270, 3).replace(aMachineId(3), machine!.id);
    const smbios1 = `uuid=${machine!.id}`;
    const scsi0 = 'local-lvm:x,size=1M';
    putVm(testFleet, 1_270, { name: 'late', description: marker, smbios1, scsi0 });
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
      { name: 'workers', machines: expect.arrayContaining([...machines]), missing: 0 },
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

describe('records without a VM', () => {
  it('are listed while the machine should have one', async () => {
    const testFleet = aTestFleet();
    const { id, placement } = await reachPhase(testFleet, 'ready');
    expect(await testFleet.fleet.orphans()).toEqual([]);
    testFleet.hypervisor.state.vms.delete(placement!.vmId);
    expect(await testFleet.fleet.orphans()).toEqual([
      {
        kind: 'record-without-vm',
        region: REGION,
        what: id,
        message: `${placement!.name} is ready, but VM ${placement!.vmId} is gone`,
        fixable: true,
      },
    ]);
  });

  it.each(['placed', 'creating', 'deleting', 'gone'] as const)(
    'are not listed of a machine that is %s',
    async (phase) => {
      const testFleet = aTestFleet();
      const { id, placement } = await reachPhase(testFleet, 'ready');
      const record = await testFleet.store.machines.get(id);
      await testFleet.store.machines.replace(record!, { ...record!.value, phase });
      testFleet.hypervisor.state.vms.delete(placement!.vmId);
      const kinds = (await testFleet.fleet.orphans()).map(({ kind }) => kind);
      expect(kinds).not.toContain('record-without-vm');
    },
  );

  it.each([
    ['exists although the view does not show it', undefined],
    ['cannot be read', new Unreachable('PVE_UNREACHABLE', 'connection refused')],
  ])('are not listed if the VM %s', async (_what, error) => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'ready');
    const { hypervisor } = testFleet;
    const view = hypervisor.view.bind(hypervisor);
    hypervisor.view = async () => ({ ...(await view()), vms: [] });
    if (error !== undefined) hypervisor.vmConfig = () => Promise.reject(error);
    expect(await testFleet.fleet.orphans()).toEqual([]);
  });
});

describe('orphans()', () => {
  it('lists a VM that may be ours and cannot be read, and no other unreadable VM', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, 1_260, { name: 'theirs' });
    putVm(testFleet, 500, { name: 'outside-the-range' });
    testFleet.hypervisor.vmConfig = () =>
      Promise.reject(new Unauthorized('PERMISSION_MISSING', 'permission denied'));
    expect(await testFleet.fleet.orphans()).toEqual([
      {
        kind: 'vm-left-alone',
        region: REGION,
        what: 'VM 1260',
        message: 'it may be a machine, but cannot be read: permission denied',
        fixable: false,
      },
    ]);
  });

  it('does not list a VM that was deleted since the view was read', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, 1_260, { name: 'theirs' });
    testFleet.hypervisor.vmConfig = () =>
      Promise.reject(new NotFound('VM_NOT_FOUND', 'no such VM'));
    expect(await testFleet.fleet.orphans()).toEqual([]);
  });

  it('lists a VM with a damaged marker with the commands that settle it', async () => {
    const testFleet = aTestFleet();
    const description = `${markerFor(1_260, 3)}\n${markerFor(1_260, 4)}`;
    putVm(testFleet, 1_260, { name: 'edited', description });
    expect(await testFleet.fleet.orphans()).toEqual([
      {
        kind: 'damaged-marker',
        region: REGION,
        what: 'VM 1260',
        message: 'its marker is damaged: the description has more than one marker',
        fixable: false,
        commands: ['pvescaler orphans adopt 1260', 'pvescaler orphans forget 1260'],
      },
    ]);
  });

  it('lists neither a template in the range nor a VM outside of it that is being created', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, 1_260, { name: 'base', template: '1' });
    putVm(testFleet, 500, { lock: 'clone' });
    expect(await testFleet.fleet.orphans()).toEqual([]);
  });

  it('fails with the error of a region that cannot be read', async () => {
    const testFleet = aTestFleet();
    testFleet.hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'no route to host'));
    await expect(testFleet.fleet.orphans()).rejects.toMatchObject({ message: 'no route to host' });
  });

  it('lists everything but Nodes while Kubernetes cannot be read', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    testFleet.hypervisor.state.vms.delete(placement.vmId);
    testFleet.cluster.view = () =>
      Promise.reject(new Unreachable('KUBERNETES_UNREACHABLE', 'connection refused'));
    const kinds = (await testFleet.fleet.orphans()).map(({ kind }) => kind);
    expect(kinds).toEqual(['record-without-vm']);
  });
});
