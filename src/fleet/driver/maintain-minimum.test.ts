// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from 'vitest';
import { InvalidConfig, Unreachable } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { aJoiningPool, aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { aPool, REGION, someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  existingResources,
  machinesIn,
  onePass,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';
import { MinimumDelay } from './minimum-delay.ts';

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

  it('requests nothing for a pool whose minimum the Cluster Autoscaler keeps', async () => {
    const limits = { ...aPool().limits, min: 2 };
    const testFleet = aTestFleet(
      someSettings([aPool({ limits, minKeptBy: 'cluster-autoscaler' })]),
    );
    await runPasses(testFleet, 5);
    expect(await machinesIn(testFleet.store)).toEqual([]);
  });
});

describe('the minimum after a start beside a Cluster Autoscaler', () => {
  /** A driver whose pool lacks two machines; `countAt` waits until this many seconds after the start. */
  function aStart() {
    const testFleet = aTestFleet(
      someSettings([aPool({ limits: { ...aPool().limits, min: 2, max: 3 } })], {
        reconcileMs: 30_000,
      }),
    );
    const { clock, fleet, store } = testFleet;
    const stop = new AbortController();
    const minimumDelay = new MinimumDelay(clock);
    const driving = fleet.runDriver({ signal: stop.signal, minimumDelay });
    onTestFinished(async () => {
      stop.abort();
      await advanceUntilSettled(clock, driving);
    });
    const startedAt = clock.now();
    const countAt = async (seconds: number) => {
      while (clock.now() < startedAt + seconds * 1_000) await clock.advance(1_000);
      return (await machinesIn(store)).length;
    };
    return { ...testFleet, minimumDelay, countAt };
  }

  it('is requested a minute after the start when no autoscaler calls', async () => {
    const { countAt } = aStart();
    expect(await countAt(58)).toBe(0);
    expect(await countAt(63)).toBe(2);
  });

  it('is requested 30 s after the first Refresh, later ones make no difference', async () => {
    const { minimumDelay, countAt } = aStart();
    expect(await countAt(10)).toBe(0);
    minimumDelay.recordRefresh();
    expect(await countAt(35)).toBe(0);
    minimumDelay.recordRefresh();
    expect(await countAt(43)).toBe(2);
  });

  it('is not requested beyond what the autoscaler requested for itself meanwhile', async () => {
    const { minimumDelay, countAt, fleet } = aStart();
    await countAt(50);
    minimumDelay.recordRefresh();
    await fleet.request('workers', 2, REASON);
    expect(await countAt(120)).toBe(2);
  });
});
