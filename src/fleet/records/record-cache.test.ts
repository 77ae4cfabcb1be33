// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aMachine, aMachineId, anIntent, aPoolState } from '../../ports/fakes/sample-records.ts';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import type { Store } from '../../ports/store.ts';
import { RecordCache } from './record-cache.ts';

function aStore(): MemoryStore {
  return new MemoryStore({ clock: new VirtualClock() });
}

const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);

async function expectMatchesStore(cache: RecordCache, store: Store): Promise<void> {
  const machines = (await store.machines.list()).map(({ value }) => value);
  expect([...cache.machines.all()].sort(byId)).toEqual(machines);
  const intents = (await store.intents.list()).map(({ value }) => value);
  expect([...cache.intents.all()].sort(byId)).toEqual(intents);
}

describe('RecordCache: own writes', () => {
  it('are visible as soon as they are durable, without a refresh', async () => {
    const store = aStore();
    const cache = new RecordCache(store);
    await cache.refresh();
    await cache.machines.put(aMachineId(1), aMachine({ id: aMachineId(1), pool: 'a' }), {});
    expect(cache.index.machinesOf('a').map(({ id }) => id)).toEqual([aMachineId(1)]);
    await cache.machines.put(aMachineId(1), aMachine({ id: aMachineId(1), pool: 'b' }), {});
    expect(cache.index.machinesOf('a')).toEqual([]);
    await cache.machines.remove(aMachineId(1), {});
    expect(cache.machines.all()).toEqual([]);
    expect(cache.index.machinesOf('b')).toEqual([]);
  });

  it('are not visible when the write was refused', async () => {
    const store = aStore();
    const cache = new RecordCache(store);
    await cache.refresh();
    const signal = AbortSignal.abort();
    const refused = cache.machines.put(aMachineId(1), aMachine({ id: aMachineId(1) }), { signal });
    await expect(refused).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(cache.machines.all()).toEqual([]);
  });
});

describe('RecordCache: writes of other processes', () => {
  it('are visible after a refresh, including writes during an earlier refresh', async () => {
    const store = aStore();
    const other = store.reopen();
    const cache = new RecordCache(store);
    expect(cache.isLoaded).toBe(false);
    await cache.refresh();
    expect(cache.isLoaded).toBe(true);
    const seen = await other.pools.create('p', aPoolState({ pool: 'p' }));
    const early = cache.refresh();
    await other.pools.replace(seen, aPoolState({ pool: 'p', allocatable: {} }));
    const later = await other.machines.create('m', aMachine({ id: aMachineId(7) }));
    await Promise.all([early, cache.refresh()]);
    expect(cache.machines.all()).toEqual([later.value]);
  });

  it('are read as a full list when the change feed no longer covers them', async () => {
    const store = aStore();
    const other = store.reopen();
    const cache = new RecordCache(store);
    const gone = await other.pools.create('gone', aPoolState({ pool: 'gone' }));
    await cache.refresh();
    await other.pools.remove(gone);
    let seen = await other.pools.create('p', aPoolState({ pool: 'p' }));
    for (let n = 0; n < 500; n += 1) seen = await other.pools.replace(seen, aPoolState());
    expect(await store.changes(1)).toBeUndefined();
    await cache.refresh();
    expect(cache.pools.get('gone')).toBeUndefined();
    expect(cache.pools.get('p')).toEqual(seen.value);
  });

  it('a refresh does not restore a record that was removed while it ran', async () => {
    const store = aStore();
    const other = store.reopen();
    const cache = new RecordCache(store);
    await cache.refresh();
    await cache.machines.put(aMachineId(1), aMachine({ id: aMachineId(1) }), {});
    await other.pools.create('p', aPoolState());
    const refreshing = cache.refresh();
    await cache.machines.remove(aMachineId(1), {});
    await refreshing;
    expect(cache.machines.all()).toEqual([]);
  });
});

interface Write {
  readonly action: 'machine' | 'intent' | 'remove';
  readonly number: number;
  readonly pool: string;
}

const write = fc.record({
  writer: fc.constantFrom('own' as const, 'other' as const),
  action: fc.constantFrom('machine' as const, 'intent' as const, 'remove' as const),
  number: fc.integer({ min: 1, max: 4 }),
  pool: fc.constantFrom('a', 'b'),
  awaited: fc.boolean(),
});

describe('RecordCache: concurrent writers', () => {
  it('any order of writes and refreshes ends with the content of the store', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(write, { maxLength: 40 }), async (writes) => {
        const store = aStore();
        const [own, other] = [new RecordCache(store), new RecordCache(store.reopen())];
        await Promise.all([own.refresh(), other.refresh()]);
        const running: Promise<unknown>[] = [];
        for (const { writer, awaited, ...rest } of writes) {
          const cache = writer === 'own' ? own : other;
          const call = cache
            .refresh()
            .then(() => apply(cache, rest))
            .catch(() => undefined);
          running.push(call);
          if (awaited) await call;
        }
        await Promise.all(running);
        await Promise.all([own.refresh(), other.refresh()]);
        await expectMatchesStore(own, store);
        await expectMatchesStore(other, store);
        expectIndexMatchesRecords(own);
      }),
      { numRuns: 100 },
    );
  });
});

function apply(cache: RecordCache, { action, number, pool }: Write) {
  const id = aMachineId(number);
  switch (action) {
    case 'machine':
      return cache.machines.put(id, aMachine({ id, pool }), {});
    case 'intent':
      return cache.intents.put(`i${number}`, anIntent({ id: `i${number}`, pool }), {});
    case 'remove':
      return cache.machines.remove(id, {});
  }
}

function expectIndexMatchesRecords({ index, machines }: RecordCache): void {
  const inPools = [...index.machinesOf('a'), ...index.machinesOf('b')];
  expect(inPools.toSorted(byId)).toEqual([...machines.all()].sort(byId));
}
