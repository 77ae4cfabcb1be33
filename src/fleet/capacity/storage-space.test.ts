// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { TimedOut } from '../../ports/errors.ts';
import { aPool, someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  machinesIn,
  onePass,
  REASON,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const GIB = 2 ** 30;

const timedOut = () => new TimedOut('REQUEST_TIMED_OUT', 'not done within 10 s');

function readsOf({ hypervisor }: TestFleet): readonly (string | undefined)[] {
  return hypervisor.calls
    .filter(({ method }) => method === 'storageSpace')
    .map(({ host }) => host)
    .sort();
}

async function hostsOf({ store }: TestFleet): Promise<readonly (string | undefined)[]> {
  return (await machinesIn(store)).map(({ placement }) => placement?.host);
}

describe('free space of storages', () => {
  it('is what the host reports as usable, not what the view estimates', async () => {
    const size = { cpu: 1, memoryBytes: GIB, diskBytes: 150 * GIB };
    const testFleet = aTestFleet(someSettings([aPool({ size })]));
    const { hypervisor, fleet, store } = testFleet;
    hypervisor.state.reservedBytes.set('local-lvm', 700 * GIB);
    await fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 3);
    expect((await machinesIn(store)).map(({ phase }) => phase)).toEqual(['requested']);
    const [refused] = (await store.journal.read()).filter(({ kind }) => kind === 'refused');
    expect(refused).toMatchObject({ reason: 'NO_STORAGE_SPACE' });
    hypervisor.state.reservedBytes.clear();
    await runPasses(testFleet, 35);
    expect(await hostsOf(testFleet)).toEqual([expect.any(String)]);
  });

  it('is read once per host within 30 s while machines wait, and not at rest', async () => {
    const size = { cpu: 2, memoryBytes: 60 * GIB, diskBytes: GIB };
    const testFleet = aTestFleet(someSettings([aPool({ size })]));
    await runPasses(testFleet, 40);
    expect(readsOf(testFleet)).toEqual([]);
    await testFleet.fleet.scaleTo('workers', 4, REASON);
    await runPasses(testFleet, 30);
    expect(readsOf(testFleet)).toEqual(['pve1', 'pve2', 'pve3']);
    await runPasses(testFleet, 5);
    expect(readsOf(testFleet)).toEqual(['pve1', 'pve1', 'pve2', 'pve2', 'pve3', 'pve3']);
    await testFleet.fleet.scaleTo('workers', 3, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const count = readsOf(testFleet).length;
    await runPasses(testFleet, 70);
    expect(readsOf(testFleet)).toHaveLength(count);
  });

  it('keeps a host that does not report it without new machines, and the others are used', async () => {
    const testFleet = aTestFleet();
    const { hypervisor, fleet, store } = testFleet;
    hypervisor.onCall = ({ method, host }) => {
      if (method === 'storageSpace' && host === 'pve1') throw timedOut();
    };
    await fleet.scaleTo('workers', 3, REASON);
    await untilAtRest(fleet, testFleet);
    expect([...(await hostsOf(testFleet))].sort()).toEqual(['pve2', 'pve2', 'pve3']);
    const failed = (await store.journal.read()).filter(({ kind }) => kind === 'failed');
    expect(failed).toEqual([
      expect.objectContaining({
        reason: 'REQUEST_TIMED_OUT',
        message:
          'host pve1 gets no new machines until the free space of its storages can be read: not done within 10 s',
      }),
    ]);
    expect(readsOf(testFleet).filter((host) => host === 'pve1').length).toBeLessThan(4);
  });

  it('subtracts what the view shows as used since the reading', async () => {
    const size = { cpu: 1, memoryBytes: GIB, diskBytes: 40 * GIB };
    const testFleet = aTestFleet(someSettings([aPool({ size })]));
    const { hypervisor, fleet } = testFleet;
    hypervisor.setOnline('pve2', false);
    hypervisor.setOnline('pve3', false);
    const [host] = hypervisor.state.hosts;
    const free = host!.storages.find(({ name }) => name === 'local-lvm')!.freeBytes;
    hypervisor.state.reservedBytes.set('local-lvm', free - 50 * GIB);
    await fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(fleet, testFleet);
    // The disk is written: the view shows it, and the reading of a moment ago does not.
    const storages = host!.storages.map((storage) =>
      storage.name === 'local-lvm' ? { ...storage, freeBytes: free - 40 * GIB } : storage,
    );
    hypervisor.state.hosts[0] = { ...host!, storages };
    await fleet.scaleTo('workers', 2, REASON);
    await onePass(fleet, testFleet);
    await onePass(fleet, testFleet);
    expect(readsOf(testFleet)).toEqual(['pve1']);
    expect([...(await hostsOf(testFleet))].sort()).toEqual(['pve1', undefined]);
  });
});
