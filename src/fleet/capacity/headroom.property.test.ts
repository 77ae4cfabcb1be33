// SPDX-License-Identifier: Apache-2.0
// Headroom equals what is placed afterwards, limited by hosts, VM ids and static addresses, also while machines wait.
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { COOL_DOWN_MS } from '../../placement/index.ts';
import { aMachine, aMachineId } from '../../ports/fakes/sample-records.ts';
import type { PoolSettings } from '../context/settings.ts';
import { aPool, aRegion, REGION, someSettings } from '../testing/settings.ts';
import { aTestFleet, machinesIn, onePass, REASON, type TestFleet } from '../testing/test-fleet.ts';

const GIB = 2 ** 30;
const POOLS = ['first', 'second'] as const;

type Rule = PoolSettings['network']['v4'];

const aRange = fc.tuple(fc.nat(12), fc.nat(5)).map(([start, length]) => ({
  from: `10.0.0.${16 + start}`,
  to: `10.0.0.${16 + start + length}`,
}));
const aV4: fc.Arbitrary<Rule> = fc.oneof(
  { arbitrary: fc.constant<Rule>({ kind: 'dhcp' }), weight: 1 },
  {
    arbitrary: fc.record({
      kind: fc.constant('static' as const),
      ranges: fc.array(aRange, { minLength: 1, maxLength: 2 }),
      prefix: fc.constantFrom(24, 28),
      gateway: fc.constantFrom(undefined, '10.0.0.18'),
    }),
    weight: 4,
  },
);
const aV6: fc.Arbitrary<Rule> = fc.oneof(
  { arbitrary: fc.constant<Rule>({ kind: 'off' }), weight: 3 },
  {
    arbitrary: fc.nat(4).map((length) => ({
      kind: 'static' as const,
      ranges: [{ from: '2001:db8::2', to: `2001:db8::${2 + length}` }],
      prefix: 64,
      gateway: undefined,
    })),
    weight: 1,
  },
);
const aCase = fc.record({
  pools: fc.tuple(fc.tuple(aV4, aV6), fc.tuple(aV4, aV6)),
  memoryGib: fc.constantFrom(2, 30),
  max: fc.integer({ min: 1, max: 8 }),
  ids: fc.integer({ min: 1, max: 12 }),
  /** Addresses of other machines, which may be gone for so many minutes. No cool-down ends during the test. */
  held: fc.array(
    fc.record({ last: fc.nat(18), freedAgo: fc.constantFrom(undefined, 0, 20, 31, 45) }),
    { maxLength: 5 },
  ),
  /** Addresses in the configuration of unmanaged VMs. */
  unmanagedAddresses: fc.array(fc.nat(18), { maxLength: 3 }),
  /** Requested first; they wait where one machine per host is created at a time. */
  waiting: fc.record({ pool: fc.constantFrom(...POOLS), count: fc.nat(5) }),
  createsPerHost: fc.constantFrom(1, 20),
  requestedPool: fc.constantFrom(...POOLS),
});

type Case = typeof aCase extends fc.Arbitrary<infer T> ? T : never;

function testFleetOf({ pools, memoryGib, max, ids, createsPerHost }: Case): TestFleet {
  const size = { cpu: 1, memoryBytes: memoryGib * GIB, diskBytes: 20 * GIB };
  const network = aPool().network;
  const settings = pools.map(([v4, v6], index) =>
    aPool({
      name: POOLS[index] ?? '',
      size,
      network: { ...network, v4, v6 },
      limits: { ...aPool().limits, max },
    }),
  );
  const region = aRegion({
    vmIds: { from: 1_250, to: 1_249 + ids },
    limits: { createsPerHost, createsPerStorage: 20 },
  });
  return aTestFleet(someSettings(settings, { regions: { [REGION]: region } }));
}

async function addTakenAddresses(
  { store, hypervisor, clock }: TestFleet,
  { held, unmanagedAddresses }: Case,
) {
  for (const [index, { last, freedAgo }] of held.entries()) {
    const id = aMachineId(1_000 + index);
    const machine = aMachine({
      id,
      pool: 'removed',
      phase: freedAgo === undefined ? 'ready' : 'gone',
      phaseSince: clock.now() - (freedAgo ?? 0) * 60_000,
      size: { cpu: 0, memoryBytes: 0, diskBytes: 0 },
      placement: {
        region: REGION,
        host: 'pve1',
        vmId: 1,
        name: id,
        diskStorage: 'local-lvm',
        addresses: [`10.0.0.${16 + last}/24`],
      },
    });
    await store.machines.create(id, machine);
  }
  for (const [index, last] of unmanagedAddresses.entries()) {
    hypervisor.state.vms.set(100 + index, {
      vmId: 100 + index,
      host: 'pve1',
      options: new Map([
        ['name', `theirs-${index}`],
        ['ipconfig0', `ip=10.0.0.${16 + last}/24`],
      ]),
      revision: 1,
      startedAt: undefined,
    });
  }
}

async function placedOf({ store }: TestFleet, pool: string): Promise<number> {
  const machines = await machinesIn(store);
  return machines.filter((one) => one.pool === pool && one.placement !== undefined).length;
}

it('headroom equals the number of machines that are placed afterwards', async () => {
  await fc.assert(
    fc.asyncProperty(aCase, async (one) => {
      const testFleet = testFleetOf(one);
      const { fleet, clock } = testFleet;
      // The clock starts late enough for cool-downs that ended before the test.
      await clock.advance(2 * COOL_DOWN_MS);
      await addTakenAddresses(testFleet, one);
      const { pool, count } = one.waiting;
      await fleet.request(pool, Math.min(count, one.max), REASON);
      await onePass(fleet, testFleet);
      const counted = fleet.forecast.headroom(one.requestedPool);
      const headroom = (counted?.machines ?? -1) + (counted?.waiting.size ?? 0);
      const placedBefore = await placedOf(testFleet, one.requestedPool);
      const members = fleet.view.index.membersOf(one.requestedPool).length;
      await fleet.request(one.requestedPool, one.max - members, REASON);
      // Nothing is released meanwhile, and every machine that fits is placed.
      for (let pass = 0; pass < 60; pass += 1) await onePass(fleet, testFleet);
      const placed = (await placedOf(testFleet, one.requestedPool)) - placedBefore;
      expect(headroom).toBe(placed);
    }),
    { numRuns: 40 },
  );
});
