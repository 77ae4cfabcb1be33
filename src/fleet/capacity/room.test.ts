// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { aBench, oneRound, untilAtRest, WHY } from '../testing/bench.ts';
import { aPool, aRegion, REGION, someSettings } from '../testing/settings.ts';

const GIB = 2 ** 30;
/** Two of them fill a host. */
const size = { cpu: 4, memoryBytes: 30 * GIB, diskBytes: 20 * GIB };

function twoPoolsOnThreeHosts() {
  const settings = someSettings([aPool({ size }), aPool({ name: 'others', size })]);
  const limits = { createsPerHost: 1, createsPerStorage: 1 };
  return aBench({ ...settings, regions: { [REGION]: aRegion({ limits }) } });
}

it('is not offered twice: machines that wait for their turn have theirs already', async () => {
  const bench = twoPoolsOnThreeHosts();
  const room = (pool: string) => bench.fleet.outlook.room(pool)?.machines;
  await oneRound(bench.fleet, bench);
  expect([room('workers'), room('others')]).toEqual([6, 6]);
  await bench.clock.advance(5_000);
  await bench.fleet.request('workers', 5, WHY);
  await oneRound(bench.fleet, bench);
  // Three are being made, two wait, and there is room for one more.
  expect([room('workers'), room('others')]).toEqual([3, 1]);
  await untilAtRest(bench.fleet, bench);
  await bench.clock.advance(5_000);
  await oneRound(bench.fleet, bench);
  expect([room('workers'), room('others')]).toEqual([1, 1]);
});

it('of a pool whose machines wait is what is left beside them', async () => {
  const bench = twoPoolsOnThreeHosts();
  await bench.fleet.request('workers', 4, WHY);
  await bench.fleet.request('others', 2, WHY);
  await oneRound(bench.fleet, bench);
  const { outlook } = bench.fleet;
  // Three were placed, three wait: everything is promised.
  const waiting =
    (outlook.room('workers')?.machines ?? 0) + (outlook.room('others')?.machines ?? 0);
  expect(waiting).toBe(3);
});

it('counts what a VM takes beyond its size before the VM is seen', async () => {
  const small = { cpu: 4, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
  const bench = aBench(someSettings([aPool({ size: small, memoryOverheadBytes: 28 * GIB })]));
  await bench.fleet.request('workers', 3, WHY);
  await oneRound(bench.fleet, bench);
  // Two of 30 GiB fill a host, and three are on their way: three more fit, whatever the view still shows.
  expect(bench.fleet.outlook.room('workers')?.machines).toBe(3);
});
