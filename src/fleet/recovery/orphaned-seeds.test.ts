// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unauthorized } from '../../ports/errors.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { seedFileName } from '../machine/vm-identity.ts';
import { aPool, CLUSTER, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  addressesInUse,
  aTestFleet,
  existingResources,
  onePass,
  type TestFleet,
} from '../testing/test-fleet.ts';

function putSeed({ hypervisor }: TestFleet, machine: number, cluster = CLUSTER): string {
  const name = seedFileName(cluster, aMachineId(machine));
  const id = hypervisor.volumeId({ storage: 'seeds', content: 'iso', name });
  const volume = { id, name, bytes: 1, content: 'iso', storage: 'seeds', host: undefined } as const;
  hypervisor.state.volumes.set(id, volume);
  return id;
}

describe('seeds without a machine', () => {
  it('are reported, or deleted if the config says so; seeds of other clusters are kept', async () => {
    const report = aTestFleet();
    const volume = putSeed(report, 1);
    await onePass(report.fleet, report);
    expect(existingResources(report.hypervisor).isos).toEqual([volume]);
    const entries = await report.store.journal.read();
    expect(entries.map(({ reason }) => reason)).toContain('OrphanSeed');
    expect(await report.fleet.orphans()).toMatchObject([{ kind: 'seed-without-machine' }]);

    const remove = aTestFleet(someSettings(undefined, { orphans: 'delete' }));
    putSeed(remove, 1);
    const theirs = putSeed(remove, 2, 'another-cluster');
    await onePass(remove.fleet, remove);
    expect(existingResources(remove.hypervisor).isos).toEqual([theirs]);
  });

  it('that cannot be deleted are recorded once with the reason, and are retried', async () => {
    const testFleet = aTestFleet(someSettings(undefined, { orphans: 'delete' }));
    const volume = putSeed(testFleet, 1);
    const failures = 2;
    for (let count = 0; count < failures; count += 1) {
      testFleet.hypervisor.failNext(
        'deleteVolume',
        new Unauthorized('PERMISSION_MISSING', 'no right'),
      );
      await onePass(testFleet.fleet, testFleet);
      await testFleet.clock.advance(6 * 60_000);
    }
    const recorded = (await testFleet.store.journal.read()).filter(({ kind }) => kind === 'failed');
    expect(recorded.map(({ message }) => message)).toEqual([
      `${volume} belongs to no machine and could not be removed: no right`,
    ]);
    await onePass(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).isos).toEqual([]);
  });
});

describe('address leases without a machine', () => {
  it('are listed as orphans and released', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    await testFleet.store.addresses.create('memory/10.10.10.12', {
      address: '10.10.10.12',
      region: 'memory',
      pool: 'workers',
      machine: aMachineId(9),
      leasedAt: 1,
    });
    expect(await testFleet.fleet.orphans()).toMatchObject([{ kind: 'address-without-machine' }]);
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesInUse(testFleet.store)).toEqual([]);
  });
});
