// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unauthorized } from '../../ports/errors.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { seedFileName } from '../machine/vm-identity.ts';
import { aHost, CLUSTER, someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  existingResources,
  journalReasonsIn,
  onePass,
  REASON,
  reachPhase,
  runPasses,
  type TestFleet,
  untilAtRest,
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

describe('seeds: when and where they are looked for', () => {
  const DELETE = someSettings(undefined, { orphans: 'delete' });
  const volumeCalls = ({ hypervisor }: TestFleet) =>
    hypervisor.calls.filter(({ method }) => method === 'volumes').map(({ host }) => host);

  it('are not deleted while a VM of the region cannot be read: it may be the machine of the seed', async () => {
    const testFleet = aTestFleet(DELETE);
    const volume = putSeed(testFleet, 1);
    testFleet.hypervisor.state.vms.set(1_280, {
      vmId: 1_280,
      host: 'pve1',
      options: new Map([['lock', 'clone']]),
      revision: 1,
      startedAt: undefined,
    });
    expect((await onePass(testFleet.fleet, testFleet)).undecided).toEqual(['memory']);
    expect(existingResources(testFleet.hypervisor).isos).toEqual([volume]);
    testFleet.hypervisor.state.vms.delete(1_280);
    await testFleet.clock.advance(6 * 60_000);
    await runPasses(testFleet, 3);
    expect(existingResources(testFleet.hypervisor).isos).toEqual([]);
  });

  it('are listed every five minutes, on one host if their storage is shared', async () => {
    const testFleet = aTestFleet(DELETE);
    await runPasses(testFleet, 10);
    expect(volumeCalls(testFleet)).toEqual(['pve1']);
    await testFleet.clock.advance(5 * 60_000);
    await runPasses(testFleet, 2);
    expect(volumeCalls(testFleet)).toEqual(['pve1', 'pve1']);
  });

  it('are listed on every host that is online and has the storage, if it is not shared', async () => {
    const testFleet = aTestFleet(DELETE);
    const storages = aHost('pve1').storages.map((one) =>
      one.name === 'seeds' ? { ...one, shared: false } : one,
    );
    const inactive = storages.map((one) => ({ ...one, active: false }));
    const { hosts } = testFleet.hypervisor.state;
    hosts.splice(
      0,
      3,
      aHost('pve1', { storages }),
      aHost('pve2', { storages: inactive }),
      aHost('pve3', { storages }),
      aHost('pve4', { storages, online: false }),
    );
    await onePass(testFleet.fleet, testFleet);
    expect(volumeCalls(testFleet).toSorted()).toEqual(['pve1', 'pve3']);
  });

  it('the seed of a machine that is being created is kept', async () => {
    const testFleet = aTestFleet(DELETE);
    await reachPhase(testFleet, 'booting');
    await testFleet.clock.advance(6 * 60_000);
    const [seed] = existingResources(testFleet.hypervisor).isos;
    testFleet.hypervisor.guestIsUp = () => Promise.resolve(false);
    await runPasses(testFleet, 3);
    expect(existingResources(testFleet.hypervisor).isos).toEqual([seed]);
    expect(await journalReasonsIn(testFleet.store)).not.toContain('OrphanSeed');
  });

  it.each([
    ['is ready, and whose seed was deleted', 1],
    ['is deleted', 0],
  ])('a seed that arrives late for a machine that %s is deleted', async (_what, count) => {
    const testFleet = aTestFleet();
    const { id } = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    await testFleet.fleet.scaleTo('workers', count, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const name = seedFileName(CLUSTER, id);
    const volume = testFleet.hypervisor.volumeId({ storage: 'seeds', content: 'iso', name });
    const late = { id: volume, name, bytes: 1, content: 'iso', storage: 'seeds' } as const;
    testFleet.hypervisor.state.volumes.set(volume, { ...late, host: undefined });
    await testFleet.clock.advance(6 * 60_000);
    await runPasses(testFleet, 3);
    expect(existingResources(testFleet.hypervisor).isos).toEqual([]);
    const recorded = await testFleet.store.journal.read();
    expect(recorded.filter(({ reason }) => reason === 'OrphanSeed')).toMatchObject([
      {
        kind: 'did',
        subject: { region: 'memory', host: 'pve1', machine: id },
        message: `${volume} belongs to no machine and was removed`,
      },
    ]);
  });

  it('a storage that cannot be listed is listed again later', async () => {
    const testFleet = aTestFleet(DELETE);
    putSeed(testFleet, 1);
    testFleet.hypervisor.failNext('volumes', new Unauthorized('PERMISSION_MISSING', 'no right'));
    await runPasses(testFleet, 3);
    expect(existingResources(testFleet.hypervisor).isos).toHaveLength(1);
    await testFleet.clock.advance(6 * 60_000);
    await runPasses(testFleet, 2);
    expect(existingResources(testFleet.hypervisor).isos).toEqual([]);
  });
});
