// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { formatMarker } from '../../model/marker.ts';
import { Unauthorized } from '../../ports/errors.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { seedFileName, seedOwner } from '../machine/vm-identity.ts';
import { aPool, CLUSTER, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  addressesInUse,
  aTestFleet,
  leftovers,
  machinesIn,
  onePass,
  type TestFleet,
  untilAtRest,
  WHY,
} from '../testing/test-fleet.ts';

function putSeed({ hypervisor }: TestFleet, machine: number, cluster = CLUSTER): string {
  const name = seedFileName(cluster, aMachineId(machine));
  const id = hypervisor.volumeId({ storage: 'seeds', content: 'iso', name });
  const volume = { id, name, bytes: 1, content: 'iso', storage: 'seeds', host: undefined } as const;
  hypervisor.state.volumes.set(id, volume);
  return id;
}

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

describe('seeds', () => {
  it('are known by name, and only our own', () => {
    const name = seedFileName(CLUSTER, aMachineId(7));
    expect(seedOwner(name, CLUSTER)).toBe(aMachineId(7));
    expect(seedOwner(name, 'another')).toBeUndefined();
    expect(seedOwner('debian.iso', CLUSTER)).toBeUndefined();
  });

  it('without a machine are reported, or deleted where the config says so', async () => {
    const report = aTestFleet();
    const volume = putSeed(report, 1);
    await onePass(report.fleet, report);
    expect(leftovers(report.hypervisor).isos).toEqual([volume]);
    const entries = await report.store.journal.read();
    expect(entries.map(({ reason }) => reason)).toContain('OrphanSeed');
    expect(await report.fleet.orphans()).toMatchObject([{ kind: 'seed-without-machine' }]);

    const remove = aTestFleet(someSettings(undefined, { orphans: 'delete' }));
    putSeed(remove, 1);
    const theirs = putSeed(remove, 2, 'another-cluster');
    await onePass(remove.fleet, remove);
    expect(leftovers(remove.hypervisor).isos).toEqual([theirs]);
  });

  it('that cannot be deleted are told once, with the reason, and tried again later', async () => {
    const bench = aTestFleet(someSettings(undefined, { orphans: 'delete' }));
    const volume = putSeed(bench, 1);
    const failures = 2;
    for (let count = 0; count < failures; count += 1) {
      bench.hypervisor.failNext('deleteVolume', new Unauthorized('PERMISSION_MISSING', 'no right'));
      await onePass(bench.fleet, bench);
      await bench.clock.advance(6 * 60_000);
    }
    const told = (await bench.store.journal.read()).filter(({ kind }) => kind === 'failed');
    expect(told.map(({ message }) => message)).toEqual([
      `${volume} belongs to no machine and could not be removed: no right`,
    ]);
    await onePass(bench.fleet, bench);
    expect(leftovers(bench.hypervisor).isos).toEqual([]);
  });
});

describe('VMs', () => {
  it('of ours without a record are adopted and finished', async () => {
    const bench = aTestFleet();
    putVm(bench, 1_260, {
      name: 'worker-x',
      description: markerFor(1_260, 3),
      smbios1: `uuid=${aMachineId(3)}`,
      cores: '2',
      scsi0: 'local-lvm:vm-1260-disk-0,size=3072M',
    });
    expect(await bench.fleet.orphans()).toMatchObject([{ kind: 'vm-without-record' }]);
    await untilAtRest(bench.fleet, bench);
    expect(await machinesIn(bench.store)).toMatchObject([{ id: aMachineId(3), phase: 'ready' }]);
    expect(await bench.fleet.orphans()).toEqual([]);
  });

  it('of ours whose machine lives elsewhere, or is over, are removed', async () => {
    const bench = aTestFleet();
    await bench.fleet.scaleTo('workers', 1, WHY);
    await untilAtRest(bench.fleet, bench);
    const [machine] = await machinesIn(bench.store);
    const marker = markerFor(1_270, 3).replace(aMachineId(3), machine!.id);
    putVm(bench, 1_270, { name: 'late', description: marker, scsi0: 'local-lvm:x,size=1M' });
    const round = onePass(bench.fleet, bench);
    await bench.clock.advance(20_000);
    await round;
    expect(leftovers(bench.hypervisor).vms).toEqual([machine?.placement?.vmId]);
  });

  it('half made and of nobody are listed, keep the minimum waiting, and are not touched', async () => {
    const bench = aTestFleet(
      someSettings([aPool({ limits: { ...aPool().limits, min: 1, max: 2 } })]),
    );
    putVm(bench, 1_280, { lock: 'clone' });
    const { undecided } = await onePass(bench.fleet, bench);
    expect(undecided).toHaveLength(1);
    expect(await machinesIn(bench.store)).toEqual([]);
    expect(await bench.fleet.orphans()).toMatchObject([{ kind: 'half-made-vm', fixable: false }]);
    bench.hypervisor.state.vms.delete(1_280);
    await untilAtRest(bench.fleet, bench);
    expect(leftovers(bench.hypervisor).vms).toHaveLength(1);
  });
});

describe('addresses', () => {
  it('of machines that are over or unknown are released', async () => {
    const bench = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    await bench.store.addresses.create('memory/10.10.10.12', {
      address: '10.10.10.12',
      region: 'memory',
      pool: 'workers',
      machine: aMachineId(9),
      leasedAt: 1,
    });
    expect(await bench.fleet.orphans()).toMatchObject([{ kind: 'address-without-machine' }]);
    await onePass(bench.fleet, bench);
    expect(await addressesInUse(bench.store)).toEqual([]);
  });
});
