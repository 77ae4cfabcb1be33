// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { InvalidConfig, Unreachable } from '../../ports/errors.ts';
import type { PoolSettings } from '../context/settings.ts';
import { aJoiningPool, aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { aPool, aRegion, REGION, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import { aTestFleet, onePass, REASON, untilAtRest } from '../testing/test-fleet.ts';

const GIB = 2 ** 30;
/** Two of them fill a host. */
const size = { cpu: 4, memoryBytes: 30 * GIB, diskBytes: 20 * GIB };

function twoPoolsOnThreeHosts() {
  const settings = someSettings([aPool({ size }), aPool({ name: 'others', size })]);
  const limits = { createsPerHost: 1, createsPerStorage: 1 };
  return aTestFleet({ ...settings, regions: { [REGION]: aRegion({ limits }) } });
}

it('headroom excludes what machines that wait for a place will use', async () => {
  const testFleet = twoPoolsOnThreeHosts();
  const headroom = (pool: string) => testFleet.fleet.forecast.headroom(pool)?.machines;
  const waiting = (pool: string) => testFleet.fleet.forecast.headroom(pool)?.waiting.size;
  await onePass(testFleet.fleet, testFleet);
  expect([headroom('workers'), headroom('others')]).toEqual([6, 6]);
  await testFleet.clock.advance(5_000);
  await testFleet.fleet.request('workers', 5, REASON);
  await onePass(testFleet.fleet, testFleet);
  // Three are being created, two wait, and one more fits.
  expect([headroom('workers'), headroom('others')]).toEqual([1, 1]);
  expect([waiting('workers'), waiting('others')]).toEqual([2, 0]);
  await untilAtRest(testFleet.fleet, testFleet);
  await testFleet.clock.advance(5_000);
  await onePass(testFleet.fleet, testFleet);
  expect([headroom('workers'), headroom('others')]).toEqual([1, 1]);
});

it('headroom is 0 when waiting machines will use all capacity', async () => {
  const testFleet = twoPoolsOnThreeHosts();
  await testFleet.fleet.request('workers', 4, REASON);
  await testFleet.fleet.request('others', 2, REASON);
  await onePass(testFleet.fleet, testFleet);
  const headrooms = ['workers', 'others'].map((pool) => testFleet.fleet.forecast.headroom(pool));
  // Three were placed, three wait: all capacity is assigned.
  expect(headrooms.map((headroom) => headroom?.machines)).toEqual([0, 0]);
  expect(headrooms.reduce((sum, headroom) => sum + (headroom?.waiting.size ?? 0), 0)).toBe(3);
});

it('headroom is limited by free static addresses, and the reason names them', async () => {
  const three = {
    ...STATIC_NETWORK,
    v4: { ...STATIC_NETWORK.v4, ranges: [{ from: '10.10.10.11', to: '10.10.10.13' }] },
  } as PoolSettings['network'];
  const testFleet = aTestFleet(
    someSettings([aPool({ network: three }), aPool({ name: 'others', network: three })]),
  );
  const headroom = (pool: string) => testFleet.fleet.forecast.headroom(pool)?.machines;
  await onePass(testFleet.fleet, testFleet);
  expect([headroom('workers'), headroom('others')]).toEqual([3, 3]);
  await testFleet.clock.advance(5_000);
  await testFleet.fleet.request('workers', 2, REASON);
  await onePass(testFleet.fleet, testFleet);
  expect([headroom('workers'), headroom('others')]).toEqual([1, 1]);
  await testFleet.clock.advance(5_000);
  await testFleet.fleet.request('others', 1, REASON);
  await onePass(testFleet.fleet, testFleet);
  expect(testFleet.fleet.forecast.headroom('workers')).toMatchObject({
    machines: 0,
    reason: expect.stringContaining('no IPv4 address of 10.10.10.11-10.10.10.13 is free'),
  });
});

it('headroom counts the memory overhead of machines whose VM is not in the view yet', async () => {
  const small = { cpu: 4, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
  const testFleet = aTestFleet(
    someSettings([aPool({ size: small, memoryOverheadBytes: 28 * GIB })]),
  );
  await testFleet.fleet.request('workers', 3, REASON);
  await onePass(testFleet.fleet, testFleet);
  // Two of 30 GiB fill a host, and three are provisioning: three more fit, whatever the view still shows.
  expect(testFleet.fleet.forecast.headroom('workers')?.machines).toBe(3);
});

it('headroom is limited by the pool limits, with machines of different sizes', async () => {
  const limits = { min: 0, max: 10, cpu: 16, memoryBytes: 0 };
  const small = { cpu: 2, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
  const testFleet = aTestFleet(someSettings([aPool({ size: small, limits })]));
  const headroom = () => testFleet.fleet.forecast.headroom('workers');
  await onePass(testFleet.fleet, testFleet);
  expect(headroom()?.machines).toBe(8);
  await testFleet.fleet.request('workers', 1, { ...REASON, size: { ...small, cpu: 12 } });
  await untilAtRest(testFleet.fleet, testFleet);
  await testFleet.clock.advance(5_000);
  await onePass(testFleet.fleet, testFleet);
  expect(headroom()?.machines).toBe(2);
  await testFleet.fleet.request('workers', 2, REASON);
  await untilAtRest(testFleet.fleet, testFleet);
  await testFleet.clock.advance(5_000);
  await onePass(testFleet.fleet, testFleet);
  expect(headroom()).toMatchObject({ machines: 0, reason: 'the pool is at its limits' });
});

it('headroom is 0 while the pool is in back-off, and the reason is its last error', async () => {
  const testFleet = aTestFleet();
  const refusal = new InvalidConfig('PARAMETER_REFUSED', 'no such bridge');
  testFleet.hypervisor.failNext('createVm', refusal);
  await testFleet.fleet.request('workers', 1, REASON);
  await untilAtRest(testFleet.fleet, testFleet);
  await testFleet.clock.advance(5_000);
  await onePass(testFleet.fleet, testFleet);
  const headroom = () => testFleet.fleet.forecast.headroom('workers');
  expect(headroom()).toMatchObject({ machines: 0, reason: 'no such bridge' });
  await testFleet.clock.advance(60_000);
  await onePass(testFleet.fleet, testFleet);
  expect(headroom()?.machines).toBeGreaterThan(0);
  expect(headroom()?.reason).toBeUndefined();
});

it('headroom of a region that cannot be read stays for a minute, and is 0 afterwards', async () => {
  const testFleet = aTestFleet();
  const { fleet, clock, hypervisor } = testFleet;
  await onePass(fleet, testFleet);
  const before = fleet.forecast.headroom('workers');
  expect(before?.machines).toBeGreaterThan(0);
  const view = hypervisor.view.bind(hypervisor);
  hypervisor.view = () => Promise.reject(new Unreachable('PVE_UNREACHABLE', 'no route'));
  await clock.advance(30_000);
  await onePass(fleet, testFleet);
  expect(fleet.forecast.headroom('workers')).toBe(before);
  await clock.advance(31_000);
  await onePass(fleet, testFleet);
  const reason = 'the hosts of the pool cannot be read';
  expect(fleet.forecast.headroom('workers')).toMatchObject({ machines: 0, reason });
  hypervisor.view = view;
  await clock.advance(5_000);
  await onePass(fleet, testFleet);
  expect(fleet.forecast.headroom('workers')?.machines).toBe(before?.machines);
});

it('headroom is computed every five seconds, and again after the wall clock was set back', async () => {
  const testFleet = aTestFleet();
  const { fleet, clock } = testFleet;
  const countedAt = () => fleet.forecast.headroom('workers')?.countedAt;
  await onePass(fleet, testFleet);
  const first = countedAt();
  await clock.advance(3_999);
  await onePass(fleet, testFleet);
  expect(countedAt()).toBe(first);
  await onePass(fleet, testFleet);
  expect(countedAt()).toBeGreaterThan(first ?? 0);
  clock.setWallClock(clock.now() - 3_600_000);
  await onePass(fleet, testFleet);
  expect(countedAt()).toBeLessThan(first ?? 0);
});

it('headroom is 0 for a pool that joins without access to a cluster, and is kept while it is stale', async () => {
  const without = aTestFleet(someSettings([aJoiningPool()]));
  await onePass(without.fleet, without);
  expect(without.fleet.forecast.headroom('workers')).toMatchObject({
    machines: 0,
    reason: expect.any(String),
  });
  const joining = aJoiningTestFleet();
  joining.cluster.disconnect();
  await joining.clock.advance(120_000);
  await onePass(joining.fleet, joining);
  expect(joining.fleet.forecast.headroom('workers')?.machines).toBeGreaterThan(0);
});

it('headroom counts free VM ids of the range only, without those of VMs, machines and Nodes', async () => {
  const region = aRegion({ vmIds: { from: 1_250, to: 1_253 } });
  const testFleet = aTestFleet(someSettings(undefined, { regions: { [REGION]: region } }));
  const { fleet, hypervisor } = testFleet;
  for (const vmId of [1_249, 1_250, 1_254]) {
    const options = new Map([['name', `theirs-${vmId}`]]);
    hypervisor.state.vms.set(vmId, {
      vmId,
      host: 'pve1',
      options,
      revision: 1,
      startedAt: undefined,
    });
  }
  await onePass(fleet, testFleet);
  expect(fleet.forecast.headroom('workers')?.machines).toBe(3);
  await fleet.request('workers', 1, REASON);
  await untilAtRest(fleet, testFleet);
  await testFleet.clock.advance(5_000);
  await onePass(fleet, testFleet);
  expect(fleet.forecast.headroom('workers')?.machines).toBe(2);
});

it('capacity per host excludes machines being created and machines that wait for a place', async () => {
  const testFleet = twoPoolsOnThreeHosts();
  const memoryOf = (pool: string) =>
    testFleet.fleet
      .capacity()
      ?.regions[0]?.pools.find((one) => one.pool === pool)
      ?.hosts.map(({ memoryBytes }) => memoryBytes / GIB);
  await onePass(testFleet.fleet, testFleet);
  expect(memoryOf('workers')).toEqual([64, 64, 64]);
  await testFleet.clock.advance(5_000);
  await testFleet.fleet.request('workers', 5, REASON);
  await onePass(testFleet.fleet, testFleet);
  expect(memoryOf('others')?.toSorted()).toEqual([34, 4, 4]);
  expect(testFleet.fleet.capacity()?.counted.size).toBe(2);
  expect(testFleet.fleet.capacity()?.unplaced.size).toBe(0);
});

it('capacity names the machines that find no place, and hosts that cannot be used', async () => {
  const testFleet = twoPoolsOnThreeHosts();
  testFleet.hypervisor.setOnline('pve2', false);
  await testFleet.fleet.request('workers', 5, REASON);
  await onePass(testFleet.fleet, testFleet);
  const capacity = testFleet.fleet.capacity();
  expect([...(capacity?.unplaced.values() ?? [])].map(({ code }) => code)).toEqual([
    'NO_HOST_FITS',
  ]);
  const hosts = capacity?.regions[0]?.pools[0]?.hosts ?? [];
  expect(hosts.find(({ host }) => host === 'pve2')?.refusal?.message).toBe('host pve2 is offline');
});

it('capacity of a region that cannot be read stays as it was, with its time', async () => {
  const testFleet = twoPoolsOnThreeHosts();
  await onePass(testFleet.fleet, testFleet);
  const before = testFleet.fleet.capacity()?.regions[0];
  testFleet.hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'no route to host'));
  await testFleet.clock.advance(10_000);
  await onePass(testFleet.fleet, testFleet);
  expect(testFleet.fleet.capacity()?.regions).toEqual([before]);
});
