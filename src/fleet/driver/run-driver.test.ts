// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { RECONCILE_LEASE } from '../../model/lease.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import type { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aPool, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  leftovers,
  machinesIn,
  type TestFleet,
  WHY,
} from '../testing/test-fleet.ts';

const HUGE = { cpu: 2, memoryBytes: 2 ** 50, diskBytes: 2 ** 34 };

function driver(bench: TestFleet, holder: string, seed: number) {
  const settings = someSettings(undefined, { holder });
  return aFleet({ ...bench, store: bench.store.reopen(), settings, seed });
}

async function waitSeconds(bench: TestFleet, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) await bench.clock.advance(1_000);
}

describe('runDriver', () => {
  it('acquires the lease, carries out requests, and releases the lease at the end', async () => {
    const bench = aTestFleet();
    const stop = new AbortController();
    const driving = driver(bench, 'a', 2).runDriver({ signal: stop.signal });
    await waitSeconds(bench, 3);
    await bench.fleet.scaleTo('workers', 2, WHY);
    await waitSeconds(bench, 120);
    expect((await machinesIn(bench.store)).map(({ phase }) => phase)).toEqual(['ready', 'ready']);
    expect((await bench.fleet.status()).driver).toBe('a');
    stop.abort();
    await advanceUntilSettled(bench.clock, driving);
    expect((await bench.fleet.status()).driver).toBeUndefined();
  });

  it('reports the begin and the end of each pass', async () => {
    const bench = aTestFleet();
    const stop = new AbortController();
    const events: string[] = [];
    const driving = driver(bench, 'a', 2).runDriver({
      signal: stop.signal,
      events: {
        onPassBegin: () => events.push('begin'),
        onPass: () => events.push('pass'),
        onPassEnd: () => events.push('end'),
      },
    });
    await waitSeconds(bench, 1);
    stop.abort();
    await advanceUntilSettled(bench.clock, driving);
    expect(events.slice(0, 2)).toEqual(['begin', 'end']);
    expect(events.filter((event) => event === 'begin')).toHaveLength(
      events.filter((event) => event === 'end').length,
    );
  });

  it('lets one of two processes be the driver; the other takes over when it stops', async () => {
    const bench = aTestFleet();
    const [stopA, stopB] = [new AbortController(), new AbortController()];
    const waiting: string[] = [];
    const a = driver(bench, 'a', 2).runDriver({ signal: stopA.signal });
    await waitSeconds(bench, 1);
    const b = driver(bench, 'b', 3).runDriver({
      signal: stopB.signal,
      events: { onWaiting: (who) => waiting.push(who) },
    });
    await bench.fleet.scaleTo('workers', 3, WHY);
    await waitSeconds(bench, 8);
    expect(new Set(waiting)).toEqual(new Set(['a']));
    stopA.abort();
    await waitSeconds(bench, 120);
    expect((await bench.fleet.status()).driver).toBe('b');
    expect(leftovers(bench.hypervisor).vms).toHaveLength(3);
    expect((await machinesIn(bench.store)).every(({ phase }) => phase === 'ready')).toBe(true);
    stopB.abort();
    await advanceUntilSettled(bench.clock, Promise.all([a, b]));
  });

  it('stops acting at once when the lease is lost', async () => {
    const bench = aTestFleet();
    const stop = new AbortController();
    const driving = driver(bench, 'a', 2).runDriver({ signal: stop.signal });
    await bench.fleet.scaleTo('workers', 2, WHY);
    await waitSeconds(bench, 4);
    const lease = await bench.store.leases.read(RECONCILE_LEASE);
    await bench.store.leases.release(lease!);
    const request = { name: RECONCILE_LEASE, holder: 'other', durationMs: 3_600_000 };
    await bench.store.leases.acquire(request);
    const changing = () =>
      bench.hypervisor.calls.filter(({ method }) => /^(create|configure|start|upload)/.test(method))
        .length;
    const [before, records] = [changing(), await machinesIn(bench.store)];
    await waitSeconds(bench, 60);
    // Calls in progress may end; none is started after the next write was refused.
    expect(changing() - before).toBeLessThanOrEqual(2);
    expect(await machinesIn(bench.store)).toEqual(records);
    stop.abort();
    await advanceUntilSettled(bench.clock, driving);
  });

  it('reads the regions rarely at rest, also while machines wait for capacity', async () => {
    const bench = aTestFleet(someSettings([aPool({ size: HUGE })]));
    const stop = new AbortController();
    const driving = bench.fleet.runDriver({ signal: stop.signal });
    await bench.fleet.scaleTo('workers', 1, WHY);
    await waitSeconds(bench, 10);
    const views = () => bench.hypervisor.calls.filter(({ method }) => method === 'view').length;
    const before = views();
    await waitSeconds(bench, 100);
    expect((await machinesIn(bench.store)).map(({ phase }) => phase)).toEqual(['requested']);
    expect(views() - before).toBeLessThanOrEqual(6);
    stop.abort();
    await advanceUntilSettled(bench.clock, driving);
  });

  it('polls tasks more often than it reads the whole region', async () => {
    const bench = aTestFleet();
    const stop = new AbortController();
    const driving = bench.fleet.runDriver({ signal: stop.signal });
    await bench.fleet.scaleTo('workers', 3, WHY);
    await waitSeconds(bench, 8);
    const count = (name: string) =>
      bench.hypervisor.calls.filter(({ method }) => method === name).length;
    expect(count('task')).toBeGreaterThan(8);
    expect(count('view')).toBeLessThanOrEqual(6);
    stop.abort();
    await advanceUntilSettled(bench.clock, driving);
  });

  it('continues after the store was busy', async () => {
    const bench = aTestFleet();
    const store: MemoryStore = bench.store.reopen();
    const { StoreUnusable } = await import('../../ports/errors.ts');
    const errors: string[] = [];
    const stop = new AbortController();
    const fleet = aFleet({ ...bench, store, settings: someSettings(), seed: 2 });
    const driving = fleet.runDriver({
      signal: stop.signal,
      events: { onError: ({ code }) => errors.push(code) },
    });
    await waitSeconds(bench, 2);
    store.failNext(new StoreUnusable('STORE_BUSY', 'locked'), 'read');
    await bench.fleet.scaleTo('workers', 1, WHY);
    await waitSeconds(bench, 100);
    expect((await machinesIn(bench.store)).map(({ phase }) => phase)).toEqual(['ready']);
    stop.abort();
    await advanceUntilSettled(bench.clock, driving);
  });
});
