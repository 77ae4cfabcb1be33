// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { InvalidConfig, Unreachable } from '../../ports/errors.ts';
import { aJoiningPool, aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
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

  it('requests nothing while machines of the pool could not join, or keep failing', async () => {
    const min = { ...aPool().limits, min: 1 };
    const joining = aJoiningTestFleet(someSettings([aJoiningPool({ limits: min })]));
    joining.cluster.disconnect();
    await joining.clock.advance(2 * 60_000);
    await runPasses(joining, 3);
    expect(await machinesIn(joining.store)).toEqual([]);

    const failing = aTestFleet(someSettings([aPool({ limits: min })]));
    failing.hypervisor.failNext('createVm', new InvalidConfig('CONFIG_INVALID', 'no such bridge'));
    await runPasses(failing, 10);
    expect(await machinesIn(failing.store)).toMatchObject([{ phase: 'failed' }]);
    await failing.clock.advance(60_000);
    await untilAtRest(failing.fleet, failing);
    expect(existingResources(failing.hypervisor).vms).toHaveLength(1);
  });

  it('requests nothing for a pool that has its minimum', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ limits: { ...aPool().limits, min: 1 } })]));
    await untilAtRest(testFleet.fleet, testFleet);
    await runPasses(testFleet, 5);
    expect(await machinesIn(testFleet.store)).toHaveLength(1);
    expect(await testFleet.store.intents.list()).toHaveLength(1);
  });
});
