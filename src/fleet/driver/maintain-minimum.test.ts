// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import { aPool, REGION, someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  existingResources,
  machinesIn,
  onePass,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('maintainMinimum', () => {
  it('requests the minimum of a pool, but not while the region cannot be read', async () => {
    const testFleet = aTestFleet(
      someSettings([aPool({ limits: { ...aPool().limits, min: 2, max: 3 } })]),
    );
    testFleet.hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'connection refused'));
    const { stale } = await onePass(testFleet.fleet, testFleet);
    expect(stale).toEqual({ [REGION]: 'connection refused' });
    expect(await machinesIn(testFleet.store)).toEqual([]);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(2);
  });

  it('requests no more than the cpu limit of the pool allows, and records the shortfall once', async () => {
    const testFleet = aTestFleet(
      someSettings([aPool({ limits: { ...aPool().limits, min: 3, cpu: 4 } })]),
    );
    await runPasses(testFleet, 3);
    expect(await machinesIn(testFleet.store)).toHaveLength(2);
    const recorded = (await testFleet.store.journal.read({})).filter(
      ({ reason }) => reason === 'POOL_AT_MAXIMUM',
    );
    expect(recorded.map(({ message }) => message)).toEqual([
      'pool workers has a minimum of 3 machines; its limits of cpu and memory allow 2',
    ]);
  });
});
