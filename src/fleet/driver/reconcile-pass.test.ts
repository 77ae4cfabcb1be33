// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { RECONCILE_LEASE } from '../../model/lease.ts';
import { InvalidConfig, TaskFailed, Unauthorized, Unreachable } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  journalReasonsIn,
  machinesIn,
  onePass,
  REASON,
  reachPhase,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('a region that cannot be read', () => {
  it('is recorded once, as refused or as stale, and its recovery too', async () => {
    const testFleet = aTestFleet();
    const { clock, fleet, hypervisor, store } = testFleet;
    const view = hypervisor.view.bind(hypervisor);
    const passes = async (error: Error | undefined) => {
      hypervisor.view = async () => {
        if (error !== undefined) throw error;
        return view();
      };
      for (const _ of [1, 2]) {
        await clock.advance(60_000);
        await onePass(fleet, testFleet);
      }
    };
    await passes(new Unauthorized('CREDENTIALS_REFUSED', 'invalid token value!'));
    await passes(undefined);
    await passes(new Unreachable('PVE_UNREACHABLE', 'connection refused'));
    await passes(undefined);
    expect(await journalReasonsIn(store)).toEqual([
      'RegionRefused',
      'ViewRecovered',
      'ViewStale',
      'ViewRecovered',
    ]);
  });
});

describe('the time of the next pass', () => {
  const RECONCILE_MS = 20_000;
  const BUSY_MS = 1_000;

  async function untilNextPass(testFleet: TestFleet): Promise<number> {
    const { store, fleet, clock } = testFleet;
    const request = { name: RECONCILE_LEASE, holder: 'test', durationMs: 3_600_000 };
    const { nextPassAt } = await fleet.reconcileOnce(await store.leases.acquire(request));
    return nextPassAt - clock.now();
  }

  it('is soon while a region has not answered for the first time, and far away after an error', async () => {
    const testFleet = aTestFleet();
    const { clock, hypervisor } = testFleet;
    let fail = () => {};
    hypervisor.view = () =>
      new Promise((_, reject) => {
        fail = () => reject(new Unauthorized('CREDENTIALS_REFUSED', 'invalid token value!'));
      });
    expect(await advanceUntilSettled(clock, untilNextPass(testFleet))).toBe(BUSY_MS);
    fail();
    expect(await advanceUntilSettled(clock, untilNextPass(testFleet))).toBe(RECONCILE_MS);
  });

  it('is far away at rest, and soon while a machine is in progress', async () => {
    const testFleet = aTestFleet();
    expect(await untilNextPass(testFleet)).toBe(RECONCILE_MS);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    expect(await untilNextPass(testFleet)).toBe(BUSY_MS);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await untilNextPass(testFleet)).toBe(RECONCILE_MS);
  });

  it('is soon while a region of a requested machine cannot be read', async () => {
    const testFleet = aTestFleet();
    const { hypervisor, fleet } = testFleet;
    const view = hypervisor.view.bind(hypervisor);
    hypervisor.view = () => Promise.reject(new Unreachable('PVE_UNREACHABLE', 'no route to host'));
    expect(await untilNextPass(testFleet)).toBe(RECONCILE_MS);
    await fleet.scaleTo('workers', 1, REASON);
    expect(await untilNextPass(testFleet)).toBe(BUSY_MS);
    hypervisor.view = view;
    await onePass(fleet, testFleet);
    expect((await machinesIn(testFleet.store))[0]?.phase).not.toBe('requested');
  });

  it('is the end of the back-off of the only machine in progress', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    const { hypervisor, fleet } = testFleet;
    for (let n = 0; n < 4; n += 1) {
      hypervisor.failNext('stopVm', new TaskFailed('TASK_FAILED', 'no'));
      hypervisor.failNext('shutdownVm', new TaskFailed('TASK_FAILED', 'no'));
    }
    await fleet.scaleTo('workers', 0, REASON);
    await runPasses(testFleet, 5);
    const next = await untilNextPass(testFleet);
    expect(next).toBeGreaterThan(BUSY_MS);
    expect(next).toBeLessThan(RECONCILE_MS);
  });

  it('is far away while a machine waits for capacity, and the end of the back-off of its pool if that is sooner', async () => {
    const huge = { cpu: 2, memoryBytes: 2 ** 50, diskBytes: 2 ** 34 };
    const waiting = aTestFleet();
    await waiting.fleet.request('workers', 1, { ...REASON, size: huge });
    await runPasses(waiting, 3);
    expect(await untilNextPass(waiting)).toBe(RECONCILE_MS);

    const backoff = { initialMs: 12_000, maxMs: 12_000 };
    const failing = aTestFleet(someSettings(undefined, { backoff }));
    failing.hypervisor.failNext('createVm', new InvalidConfig('CONFIG_INVALID', 'no such bridge'));
    await failing.fleet.request('workers', 1, REASON);
    await runPasses(failing, 5);
    await failing.fleet.request('workers', 1, REASON);
    const next = await untilNextPass(failing);
    expect(next).toBeGreaterThan(BUSY_MS);
    expect(next).toBeLessThan(12_000);
  });
});
