// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { InvalidConfig } from '../../ports/errors.ts';
import { someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  phasesIn,
  REASON,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('backOff', () => {
  it('counts two machines of a pool that fail in the same pass as one failure', async () => {
    const testFleet = aTestFleet();
    const refusal = new InvalidConfig('CONFIG_INVALID', 'no such bridge');
    testFleet.hypervisor.failNext('createVm', refusal);
    testFleet.hypervisor.failNext('createVm', refusal);
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['failed', 'failed']);
    const { pools } = await testFleet.fleet.status();
    expect(pools[0]?.backoff?.failures).toBe(1);
  });

  /** Lets one machine of the pool fail, after the back-off of the one before. */
  async function failOnce(testFleet: TestFleet) {
    const { hypervisor, fleet, clock } = testFleet;
    const before = (await fleet.status()).pools[0]?.backoff;
    await clock.advance(Math.max(0, (before?.until ?? 0) - clock.now()));
    hypervisor.failNext('createVm', new InvalidConfig('CONFIG_INVALID', 'no such bridge'));
    await fleet.request('workers', 1, REASON);
    await runPasses(testFleet, 6);
    const { backoff } = (await fleet.status()).pools[0]!;
    return { ...backoff, pauseMs: (backoff?.until ?? 0) - (before?.until ?? backoff?.since ?? 0) };
  }

  it('doubles the pause with each failure up to the maximum, and keeps the time of the first', async () => {
    const backoff = { initialMs: 60_000, maxMs: 200_000 };
    const testFleet = aTestFleet(someSettings(undefined, { backoff }));
    const first = await failOnce(testFleet);
    expect(first).toMatchObject({ failures: 1, code: 'CONFIG_INVALID', pauseMs: 60_000 });
    const later = [await failOnce(testFleet), await failOnce(testFleet), await failOnce(testFleet)];
    expect(later.map(({ failures }) => failures)).toEqual([2, 3, 4]);
    expect(new Set(later.map(({ since }) => since))).toEqual(new Set([first.since]));
    const seconds = (await testFleet.store.journal.read())
      .filter(({ reason }) => reason === 'PoolBackedOff')
      .map(({ numbers }) => numbers?.['seconds']);
    expect(seconds.toSorted()).toEqual([120, 200, 200, 60].toSorted());
  });

  it('refuses machines with the error of the last failure until the pause has ended', async () => {
    const testFleet = aTestFleet();
    await failOnce(testFleet);
    await testFleet.fleet.request('workers', 1, REASON);
    await runPasses(testFleet, 5);
    expect((await phasesIn(testFleet.store)).toSorted()).toEqual(['failed', 'requested']);
    await testFleet.clock.advance(60_000);
    await untilAtRest(testFleet.fleet, testFleet);
    expect((await phasesIn(testFleet.store)).toSorted()).toEqual(['failed', 'ready']);
    expect((await testFleet.fleet.status()).pools[0]?.backoff).toBeUndefined();
    expect(await failOnce(testFleet)).toMatchObject({ failures: 1 });
  });
});
