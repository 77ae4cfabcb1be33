// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { PoolSettings } from '../context/settings.ts';
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
