// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { PoolSettings } from '../context/settings.ts';
import { aPool, aRegion, REGION, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import { aTestFleet, onePass, untilAtRest, WHY } from '../testing/test-fleet.ts';

const GIB = 2 ** 30;
/** Two of them fill a host. */
const size = { cpu: 4, memoryBytes: 30 * GIB, diskBytes: 20 * GIB };

function twoPoolsOnThreeHosts() {
  const settings = someSettings([aPool({ size }), aPool({ name: 'others', size })]);
  const limits = { createsPerHost: 1, createsPerStorage: 1 };
  return aTestFleet({ ...settings, regions: { [REGION]: aRegion({ limits }) } });
}

it('is not offered twice: machines that wait for their turn have theirs already', async () => {
  const bench = twoPoolsOnThreeHosts();
  const room = (pool: string) => bench.fleet.forecast.headroom(pool)?.machines;
  const waiting = (pool: string) => bench.fleet.forecast.headroom(pool)?.waiting.size;
  await onePass(bench.fleet, bench);
  expect([room('workers'), room('others')]).toEqual([6, 6]);
  await bench.clock.advance(5_000);
  await bench.fleet.request('workers', 5, WHY);
  await onePass(bench.fleet, bench);
  // Three are being made, two wait, and there is room for one more.
  expect([room('workers'), room('others')]).toEqual([1, 1]);
  expect([waiting('workers'), waiting('others')]).toEqual([2, 0]);
  await untilAtRest(bench.fleet, bench);
  await bench.clock.advance(5_000);
  await onePass(bench.fleet, bench);
  expect([room('workers'), room('others')]).toEqual([1, 1]);
});

it('of a pool whose machines wait is what is left beside them', async () => {
  const bench = twoPoolsOnThreeHosts();
  await bench.fleet.request('workers', 4, WHY);
  await bench.fleet.request('others', 2, WHY);
  await onePass(bench.fleet, bench);
  const rooms = ['workers', 'others'].map((pool) => bench.fleet.forecast.headroom(pool));
  // Three were placed, three wait: everything is promised.
  expect(rooms.map((room) => room?.machines)).toEqual([0, 0]);
  expect(rooms.reduce((sum, room) => sum + (room?.waiting.size ?? 0), 0)).toBe(3);
});

it('is no more than there are static addresses, and says so', async () => {
  const three = {
    ...STATIC_NETWORK,
    v4: { ...STATIC_NETWORK.v4, ranges: [{ from: '10.10.10.11', to: '10.10.10.13' }] },
  } as PoolSettings['network'];
  const bench = aTestFleet(
    someSettings([aPool({ network: three }), aPool({ name: 'others', network: three })]),
  );
  const room = (pool: string) => bench.fleet.forecast.headroom(pool)?.machines;
  await onePass(bench.fleet, bench);
  expect([room('workers'), room('others')]).toEqual([3, 3]);
  await bench.clock.advance(5_000);
  await bench.fleet.request('workers', 2, WHY);
  await onePass(bench.fleet, bench);
  expect([room('workers'), room('others')]).toEqual([1, 1]);
  await bench.clock.advance(5_000);
  await bench.fleet.request('others', 1, WHY);
  await onePass(bench.fleet, bench);
  expect(bench.fleet.forecast.headroom('workers')).toMatchObject({
    machines: 0,
    reason: expect.stringContaining('no IPv4 address of 10.10.10.11-10.10.10.13 is free'),
  });
});

it('counts what a VM takes beyond its size before the VM is seen', async () => {
  const small = { cpu: 4, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
  const bench = aTestFleet(someSettings([aPool({ size: small, memoryOverheadBytes: 28 * GIB })]));
  await bench.fleet.request('workers', 3, WHY);
  await onePass(bench.fleet, bench);
  // Two of 30 GiB fill a host, and three are on their way: three more fit, whatever the view still shows.
  expect(bench.fleet.forecast.headroom('workers')?.machines).toBe(3);
});

it('ends with the limits of the pool, whatever the sizes of the machines that it has', async () => {
  const limits = { min: 0, max: 10, cpu: 16, memoryBytes: 0 };
  const small = { cpu: 2, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
  const bench = aTestFleet(someSettings([aPool({ size: small, limits })]));
  const room = () => bench.fleet.forecast.headroom('workers');
  await onePass(bench.fleet, bench);
  expect(room()?.machines).toBe(8);
  await bench.fleet.request('workers', 1, { ...WHY, size: { ...small, cpu: 12 } });
  await untilAtRest(bench.fleet, bench);
  await bench.clock.advance(5_000);
  await onePass(bench.fleet, bench);
  expect(room()?.machines).toBe(2);
  await bench.fleet.request('workers', 2, WHY);
  await untilAtRest(bench.fleet, bench);
  await bench.clock.advance(5_000);
  await onePass(bench.fleet, bench);
  expect(room()).toMatchObject({ machines: 0, reason: 'the pool is at its limits' });
});
