// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aPool, someSettings } from '../testing/settings.ts';
import { aFleet, aTestFleet, phasesIn, REASON, untilAtRest } from '../testing/test-fleet.ts';

const GIB = 2 ** 30;
const LIMITS = aPool().limits;

function withLimits(limits: Partial<typeof LIMITS>) {
  return aTestFleet(someSettings([aPool({ limits: { ...LIMITS, ...limits } })]));
}

describe('the limits of a pool', () => {
  it('the cpu limit counts all machines, including requested ones', async () => {
    const { fleet } = withLimits({ cpu: 5 });
    await fleet.request('workers', 2, REASON);
    await expect(fleet.request('workers', 1, REASON)).rejects.toMatchObject({
      code: 'POOL_AT_MAXIMUM',
      message: 'pool workers is limited to 5 vCPUs; 3 machines would have 6',
    });
  });

  it('the memory limit counts the size of the request', async () => {
    const { fleet } = withLimits({ memoryBytes: 5 * GIB });
    await fleet.request('workers', 1, REASON);
    const size = { cpu: 1, memoryBytes: 4 * GIB, diskBytes: 20 * GIB };
    await expect(fleet.request('workers', 1, { ...REASON, size })).rejects.toMatchObject({
      code: 'POOL_AT_MAXIMUM',
      message: 'pool workers is limited to 5 GiB of memory; 2 machines would have 6 GiB',
    });
    await expect(fleet.scaleTo('workers', 2, REASON)).resolves.toHaveProperty('machines.length', 1);
  });

  it('machines beyond the cpu limit fail when two processes request at the same time', async () => {
    const settings = someSettings([aPool({ limits: { ...LIMITS, cpu: 6 } })]);
    const testFleet = aTestFleet(settings);
    const other = aFleet({ ...testFleet, settings, seed: 9 });
    await Promise.all([
      testFleet.fleet.request('workers', 2, REASON),
      other.request('workers', 2, REASON),
    ]);
    await untilAtRest(testFleet.fleet, testFleet);
    const phases = await phasesIn(testFleet.store);
    expect(phases.toSorted()).toEqual(['failed', 'ready', 'ready', 'ready']);
  });

  it('a limit of 0 means no limit', async () => {
    const { fleet } = withLimits({});
    expect((await fleet.request('workers', 10, REASON)).machines).toHaveLength(10);
  });
});
