// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { RECONCILE_LEASE, RECONCILE_LEASE_MS } from '../../model/lease.ts';
import { Cancelled, StoreUnusable, Unreachable } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import type { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { TaskRef } from '../../ports/hypervisor.ts';
import { DriverRegistry } from '../context/driver-lease.ts';
import { createFleet } from '../fleet.ts';
import { aPool, REGION, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  phasesIn,
  REASON,
  type TestFleet,
} from '../testing/test-fleet.ts';

const HUGE = { cpu: 2, memoryBytes: 2 ** 50, diskBytes: 2 ** 34 };

function driver(testFleet: TestFleet, holder: string, seed: number) {
  const settings = someSettings(undefined, { holder });
  return aFleet({ ...testFleet, store: testFleet.store.reopen(), settings, seed });
}

async function waitSeconds(testFleet: TestFleet, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) await testFleet.clock.advance(1_000);
}

describe('runDriver', () => {
  it('acquires the lease, carries out requests, and releases the lease at the end', async () => {
    const testFleet = aTestFleet();
    const stop = new AbortController();
    const driving = driver(testFleet, 'a', 2).runDriver({ signal: stop.signal });
    await waitSeconds(testFleet, 3);
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await waitSeconds(testFleet, 120);
    expect(await phasesIn(testFleet.store)).toEqual(['ready', 'ready']);
    expect((await testFleet.fleet.status()).driver).toBe('a');
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
    expect((await testFleet.fleet.status()).driver).toBeUndefined();
  });

  it('reports the start and the end of each pass', async () => {
    const testFleet = aTestFleet();
    const stop = new AbortController();
    const events: string[] = [];
    const driving = driver(testFleet, 'a', 2).runDriver({
      signal: stop.signal,
      events: {
        onPassBegin: () => events.push('begin'),
        onPass: () => events.push('pass'),
        onPassEnd: () => events.push('end'),
      },
    });
    await waitSeconds(testFleet, 1);
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
    expect(events.slice(0, 2)).toEqual(['begin', 'end']);
    expect(events.filter((event) => event === 'begin')).toHaveLength(
      events.filter((event) => event === 'end').length,
    );
  });

  it('synchronizes the store before its first pass, and waits until that succeeds', async () => {
    const testFleet = aTestFleet();
    const events: string[] = [];
    const store = testFleet.store.reopen();
    store.synchronize = () => {
      events.push('synchronize');
      if (events.length < 3) return Promise.reject(new Unreachable('VIEW_STALE', 'not yet'));
      return Promise.resolve();
    };
    const fleet = aFleet({ ...testFleet, store, settings: someSettings(), seed: 2 });
    const stop = new AbortController();
    const driving = fleet.runDriver({
      signal: stop.signal,
      events: {
        onError: () => events.push('error'),
        onLeading: (isLeading) => events.push(isLeading ? 'leads' : 'ended'),
        onPassBegin: () => events.push('pass'),
      },
    });
    await waitSeconds(testFleet, 4);
    expect(events.slice(0, 5)).toEqual(['synchronize', 'error', 'synchronize', 'leads', 'pass']);
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
  });

  it('one of two processes is the driver; the other takes over when it stops', async () => {
    const testFleet = aTestFleet();
    const [stopA, stopB] = [new AbortController(), new AbortController()];
    const waiting: string[] = [];
    const a = driver(testFleet, 'a', 2).runDriver({ signal: stopA.signal });
    await waitSeconds(testFleet, 1);
    const b = driver(testFleet, 'b', 3).runDriver({
      signal: stopB.signal,
      events: { onWaiting: (holder) => waiting.push(holder) },
    });
    await testFleet.fleet.scaleTo('workers', 3, REASON);
    await waitSeconds(testFleet, 8);
    expect(new Set(waiting)).toEqual(new Set(['a']));
    stopA.abort();
    await waitSeconds(testFleet, 120);
    expect((await testFleet.fleet.status()).driver).toBe('b');
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(3);
    expect((await machinesIn(testFleet.store)).every(({ phase }) => phase === 'ready')).toBe(true);
    stopB.abort();
    await advanceUntilSettled(testFleet.clock, Promise.all([a, b]));
  });

  it('stops acting at once when the lease is lost', async () => {
    const testFleet = aTestFleet();
    const stop = new AbortController();
    const driving = driver(testFleet, 'a', 2).runDriver({ signal: stop.signal });
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await waitSeconds(testFleet, 4);
    const lease = await testFleet.store.leases.read(RECONCILE_LEASE);
    await testFleet.store.leases.release(lease!);
    const request = { name: RECONCILE_LEASE, holder: 'other', durationMs: 3_600_000 };
    await testFleet.store.leases.acquire(request);
    const changing = () =>
      testFleet.hypervisor.calls.filter(({ method }) =>
        /^(create|configure|start|upload)/.test(method),
      ).length;
    const [before, records] = [changing(), await machinesIn(testFleet.store)];
    await waitSeconds(testFleet, 60);
    // Calls in progress may end; none is started after the next write was refused.
    expect(changing() - before).toBeLessThanOrEqual(2);
    expect(await machinesIn(testFleet.store)).toEqual(records);
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
  });

  it('reads the regions rarely at rest, also while machines wait for capacity', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ size: HUGE })]));
    const stop = new AbortController();
    const driving = testFleet.fleet.runDriver({ signal: stop.signal });
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await waitSeconds(testFleet, 10);
    const views = () => testFleet.hypervisor.calls.filter(({ method }) => method === 'view').length;
    const before = views();
    await waitSeconds(testFleet, 100);
    expect(await phasesIn(testFleet.store)).toEqual(['requested']);
    expect(views() - before).toBeLessThanOrEqual(6);
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
  });

  it('polls tasks more often than it reads the whole region', async () => {
    const testFleet = aTestFleet();
    const stop = new AbortController();
    const driving = testFleet.fleet.runDriver({ signal: stop.signal });
    await testFleet.fleet.scaleTo('workers', 3, REASON);
    await waitSeconds(testFleet, 8);
    const count = (name: string) =>
      testFleet.hypervisor.calls.filter(({ method }) => method === name).length;
    expect(count('task')).toBeGreaterThan(8);
    expect(count('view')).toBeLessThanOrEqual(6);
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
  });

  it('continues after the store was busy', async () => {
    const testFleet = aTestFleet();
    const store: MemoryStore = testFleet.store.reopen();
    const errors: string[] = [];
    const stop = new AbortController();
    const fleet = aFleet({ ...testFleet, store, settings: someSettings(), seed: 2 });
    const driving = fleet.runDriver({
      signal: stop.signal,
      events: { onError: ({ code }) => errors.push(code) },
    });
    await waitSeconds(testFleet, 2);
    store.failNext(new StoreUnusable('STORE_BUSY', 'locked'), 'read');
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await waitSeconds(testFleet, 100);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
  });

  it('gives up its lease and ends when a pass or a call never ends', async () => {
    for (const [hungCall, seconds] of [
      ['store', 130],
      ['hypervisor', 1_000],
    ] as const) {
      const { clock, store, hypervisor } = aTestFleet();
      const forever = () => new Promise<never>(() => undefined);
      const hungStore = new Proxy(store, {
        get: (target, name) => {
          if (name === 'journal' && hungCall === 'store') return { append: forever };
          const member: unknown = Reflect.get(target, name, target);
          return typeof member === 'function' ? (member.bind(target) as unknown) : member;
        },
      });
      const hungHypervisor = new Proxy(hypervisor, {
        get: (target, name) => {
          if (name === 'createVm' && hungCall === 'hypervisor') return forever;
          const member: unknown = Reflect.get(target, name, target);
          return typeof member === 'function' ? (member.bind(target) as unknown) : member;
        },
      });
      const fleet = aFleet({
        clock,
        store: hungStore,
        hypervisor: hungHypervisor,
        settings: someSettings(),
        seed: 1,
      });
      await fleet.scaleTo('workers', 1, REASON);
      const driving = fleet.runDriver({ signal: new AbortController().signal }).then(
        () => undefined,
        (error: unknown) => error,
      );
      for (let second = 0; second < seconds; second += 1) await clock.advance(1_000);
      expect(await driving).toMatchObject({ code: 'DRIVER_STALLED' });
      const lease = await store.leases.read(RECONCILE_LEASE);
      expect(lease?.expiresAt).toBeLessThanOrEqual(clock.now());
    }
  });

  it('changes nothing after it gave up its lease, even when the call that hung ends', async () => {
    const { clock, store, hypervisor } = aTestFleet();
    let resume = () => {};
    const hung = new Promise<void>((resolve) => {
      resume = resolve;
    });
    const hungHypervisor = new Proxy(hypervisor, {
      get: (target, name) => {
        if (name === 'volumes') {
          return (...args: Parameters<typeof target.volumes>) =>
            hung.then(() => target.volumes(...args));
        }
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === 'function' ? (member.bind(target) as unknown) : member;
      },
    });
    const parts = { clock, store, hypervisor: hungHypervisor, settings: someSettings(), seed: 1 };
    const fleet = aFleet(parts);
    await fleet.scaleTo('workers', 1, REASON);
    const driving = fleet
      .runDriver({ signal: new AbortController().signal })
      .catch((error: unknown) => error);
    for (let second = 0; second < 1_000; second += 1) await clock.advance(1_000);
    expect(await driving).toMatchObject({ code: 'DRIVER_STALLED' });
    hypervisor.calls.length = 0;
    resume();
    for (let second = 0; second < 5; second += 1) await clock.advance(1_000);
    expect(hypervisor.calls).toEqual([]);
  });

  describe('with a registry that adapters check before each change', () => {
    function aRegisteredDriver() {
      const testFleet = aTestFleet();
      const registry = new DriverRegistry(testFleet.clock);
      const fleet = createFleet({
        ...testFleet,
        hypervisors: new Map([[REGION, testFleet.hypervisor]]),
        random: new SeededRandom(2),
        settings: someSettings(),
        driverRegistry: registry,
      });
      const stop = new AbortController();
      const driving = fleet.runDriver({ signal: stop.signal });
      const end = async () => {
        stop.abort();
        await advanceUntilSettled(testFleet.clock, driving);
      };
      return { ...testFleet, registry, end };
    }

    it('may not act after its lease has expired while the process was frozen', async () => {
      const driving = aRegisteredDriver();
      await waitSeconds(driving, 3);
      expect(driving.registry.mayAct()).toBe(true);
      const { expiresAt = 0 } = (await driving.store.leases.read(RECONCILE_LEASE)) ?? {};
      driving.clock.setWallClock(expiresAt - 1);
      expect(driving.registry.mayAct()).toBe(true);
      driving.clock.setWallClock(expiresAt);
      expect(driving.registry.mayAct()).toBe(false);
      await driving.end();
    });

    it('may not act after the duration of its lease, even if the wall clock was set back', async () => {
      const driving = aRegisteredDriver();
      await waitSeconds(driving, 3);
      driving.clock.setWallClock(driving.clock.now() - 3_600_000);
      const busy = new StoreUnusable('STORE_BUSY', 'locked');
      driving.store.leases.renew = () => Promise.reject(busy);
      await waitSeconds(driving, RECONCILE_LEASE_MS / 1_000);
      expect(driving.registry.mayAct()).toBe(false);
      await driving.end();
    });

    it('may not act after its lease was lost, even while a call hangs and before the lease would have expired', async () => {
      const driving = aRegisteredDriver();
      const called = Promise.withResolvers<void>();
      const hanging = Promise.withResolvers<TaskRef>();
      driving.hypervisor.createVm = () => {
        called.resolve();
        return hanging.promise;
      };
      await driving.fleet.scaleTo('workers', 1, REASON);
      await advanceUntilSettled(driving.clock, called.promise);
      const lease = await driving.store.leases.read(RECONCILE_LEASE);
      await driving.store.leases.release(lease!);
      const request = { name: RECONCILE_LEASE, holder: 'other', durationMs: 3_600_000 };
      await driving.store.leases.acquire(request);
      await waitSeconds(driving, 6);
      expect(driving.clock.now()).toBeLessThan(lease!.expiresAt);
      expect(driving.registry.mayAct()).toBe(false);
      hanging.reject(new Cancelled('CANCELLED', 'the test is over'));
      await driving.end();
    });
  });
});
