// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aPool, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  machinesIn,
  onePass,
  untilAtRest,
  WHY,
} from '../testing/test-fleet.ts';

const GIB = 2 ** 30;
const LIMITS = aPool().limits;

function withLimits(limits: Partial<typeof LIMITS>) {
  return aTestFleet(someSettings([aPool({ limits: { ...LIMITS, ...limits } })]));
}

describe('the limits of a pool', () => {
  it('count vCPUs of all machines together, those that are only asked for too', async () => {
    const { fleet } = withLimits({ cpu: 5 });
    await fleet.request('workers', 2, WHY);
    await expect(fleet.request('workers', 1, WHY)).rejects.toMatchObject({
      code: 'POOL_AT_MAXIMUM',
      message: 'pool workers is limited to 5 vCPUs; 3 machines would have 6',
    });
  });

  it('count memory, with the size that is asked for', async () => {
    const { fleet } = withLimits({ memoryBytes: 5 * GIB });
    await fleet.request('workers', 1, WHY);
    const size = { cpu: 1, memoryBytes: 4 * GIB, diskBytes: 20 * GIB };
    await expect(fleet.request('workers', 1, { ...WHY, size })).rejects.toMatchObject({
      code: 'POOL_AT_MAXIMUM',
      message: 'pool workers is limited to 5 GiB of memory; 2 machines would have 6 GiB',
    });
    await expect(fleet.scaleTo('workers', 2, WHY)).resolves.toHaveProperty('machines.length', 1);
  });

  it('hold when two processes asked at the same instant', async () => {
    const settings = someSettings([aPool({ limits: { ...LIMITS, cpu: 6 } })]);
    const bench = aTestFleet(settings);
    const other = aFleet({ ...bench, settings, seed: 9 });
    await Promise.all([bench.fleet.request('workers', 2, WHY), other.request('workers', 2, WHY)]);
    await untilAtRest(bench.fleet, bench);
    const phases = (await machinesIn(bench.store)).map(({ phase }) => phase);
    expect(phases.toSorted()).toEqual(['failed', 'ready', 'ready', 'ready']);
  });

  it('of 0 are none', async () => {
    const { fleet } = withLimits({});
    expect((await fleet.request('workers', 10, WHY)).machines).toHaveLength(10);
  });

  it('also hold for the minimum, which is told once', async () => {
    const bench = withLimits({ min: 3, cpu: 4 });
    for (let round = 0; round < 3; round += 1) await onePass(bench.fleet, bench);
    expect(await machinesIn(bench.store)).toHaveLength(2);
    const told = (await bench.store.journal.read({})).filter(
      ({ reason }) => reason === 'POOL_AT_MAXIMUM',
    );
    expect(told.map(({ message }) => message)).toEqual([
      'pool workers has a minimum of 3 machines; its limits of cpu and memory allow 2',
    ]);
  });
});
