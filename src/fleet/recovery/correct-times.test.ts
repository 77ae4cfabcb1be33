// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { TaskFailed } from '../../ports/errors.ts';
import { aPool, aRegion, REGION, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  journalReasonsIn,
  keepRunning,
  machinesIn,
  onePass,
  phasesIn,
  REASON,
  reachPhase,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Runs `work` while the wall clock is a day ahead. */
async function aDayAhead<T>({ clock }: TestFleet, work: () => Promise<T>): Promise<T> {
  clock.setWallClock(clock.now() + DAY_MS);
  const result = await work();
  clock.setWallClock(clock.now() - DAY_MS);
  return result;
}

describe('after the wall clock was a day ahead and was set back', () => {
  it('a VM id and an address are assigned again after their normal cool-down', async () => {
    const network = {
      ...STATIC_NETWORK,
      v4: {
        kind: 'static' as const,
        ranges: [{ from: '10.10.10.11', to: '10.10.10.11' }],
        prefix: 24,
        gateway: '10.10.10.1',
      },
    };
    const regions = { [REGION]: aRegion({ vmIds: { from: 1_250, to: 1_250 } }) };
    const testFleet = aTestFleet(someSettings([aPool({ network })], { regions }));
    await aDayAhead(testFleet, async () => {
      await reachPhase(testFleet, 'ready');
      await testFleet.fleet.scaleTo('workers', 0, REASON);
      await untilAtRest(testFleet.fleet, testFleet);
    });
    await onePass(testFleet.fleet, testFleet);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await testFleet.clock.advance(29 * MINUTE_MS);
    await runPasses(testFleet, 2);
    const phases = async () => (await phasesIn(testFleet.store)).toSorted();
    expect(await phases()).toEqual(['gone', 'requested']);
    await testFleet.clock.advance(MINUTE_MS);
    await runPasses(testFleet, 30);
    expect(await phases()).toEqual(['gone', 'ready']);
    await testFleet.clock.advance(6 * MINUTE_MS);
    await runPasses(testFleet, 2);
    expect(await phases()).toEqual(['ready']);
    expect(await journalReasonsIn(testFleet.store)).toContain('ClockSetBack');
  });

  it('a pool creates machines again after its normal back-off', async () => {
    const testFleet = aTestFleet();
    await aDayAhead(testFleet, async () => {
      for (let attempt = 0; attempt < 3; attempt += 1) {
        testFleet.hypervisor.failNextTask('create', new TaskFailed('TASK_FAILED', 'no space left'));
      }
      await testFleet.fleet.scaleTo('workers', 1, REASON);
      await runPasses(testFleet, 20);
    });
    const backoff = async () => (await testFleet.fleet.status()).pools[0]?.backoff;
    await onePass(testFleet.fleet, testFleet);
    expect(await backoff()).toMatchObject({ failures: 1 });
    await testFleet.clock.advance(MINUTE_MS);
    expect(await backoff()).toBeUndefined();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect((await testFleet.fleet.status()).pools[0]?.ready).toBe(1);
  });

  it('a task that does not end is reported after the normal timeout of tasks, and then followed to its end', async () => {
    const testFleet = aTestFleet();
    const { store, clock, fleet } = testFleet;
    await reachPhase(testFleet, 'ready');
    await aDayAhead(testFleet, async () => {
      await fleet.scaleTo('workers', 0, REASON);
      await onePass(fleet, testFleet);
    });
    const running = keepRunning(testFleet, 'shutdown');
    await runPasses(testFleet, 10);
    expect(await journalReasonsIn(store)).not.toContain('TaskOverdue');
    await clock.advance(16 * MINUTE_MS);
    await runPasses(testFleet, 10);
    expect((await journalReasonsIn(store)).filter((one) => one === 'TaskOverdue')).toHaveLength(1);
    expect(await phasesIn(store)).toEqual(['deleting']);
    running.end();
    await untilAtRest(fleet, testFleet, 30);
    expect(await phasesIn(store)).toEqual(['gone']);
  });

  it('the records of applied requests are removed after their normal time', async () => {
    const testFleet = aTestFleet();
    await aDayAhead(testFleet, () => reachPhase(testFleet, 'ready'));
    await onePass(testFleet.fleet, testFleet);
    await testFleet.clock.advance(61 * MINUTE_MS);
    await onePass(testFleet.fleet, testFleet);
    expect(await testFleet.store.intents.list()).toEqual([]);
  });

  it('a machine in back-off after an error is reconciled again within seconds', async () => {
    const testFleet = aTestFleet();
    const { fleet, hypervisor } = testFleet;
    await reachPhase(testFleet, 'ready');
    await fleet.scaleTo('workers', 0, REASON);
    await aDayAhead(testFleet, async () => {
      hypervisor.failNext('vmConfig', new TaskFailed('TASK_FAILED', 'got no worker upid'));
      await onePass(fleet, testFleet);
    });
    await untilAtRest(fleet, testFleet, 60);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });
});

it('a time within a minute in the future is kept: clocks of two processes differ', async () => {
  const testFleet = aTestFleet();
  const { id, phaseSince } = await reachPhase(testFleet, 'ready');
  testFleet.clock.setWallClock(phaseSince - 59_000);
  await onePass(testFleet.fleet, testFleet);
  const [machine] = await machinesIn(testFleet.store);
  expect(machine).toMatchObject({ id, phaseSince });
});
