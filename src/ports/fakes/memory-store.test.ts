// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { storeContract } from '../contract/store.contract.ts';
import { StoreUnusable } from '../errors.ts';
import type { StoreWrite } from '../store-write.ts';
import { MemoryStore, SimulatedCrash } from './memory-store.ts';
import { aJournalEntry, aPoolState } from './sample-records.ts';
import { VirtualClock } from './virtual-clock.ts';

storeContract('memory', async (clock) => {
  const store = new MemoryStore({ clock });
  return { store, reopen: async () => store.reopen(), cleanup: () => store.close() };
});

describe('MemoryStore', () => {
  const full = new StoreUnusable('STORE_FULL', 'the disk is full');

  it('fails the next call once and changes nothing', async () => {
    const store = new MemoryStore({ clock: new VirtualClock() });
    store.failNext(full);
    await expect(store.pools.create('a', aPoolState())).rejects.toBe(full);
    expect(await store.pools.list()).toEqual([]);
  });

  it('can fail the next write and let reads pass', async () => {
    const store = new MemoryStore({ clock: new VirtualClock() });
    store.failNext(full, 'write');
    expect(await store.pools.list()).toEqual([]);
    await expect(store.journal.append(aJournalEntry())).rejects.toBe(full);
    expect(await store.journal.read()).toEqual([]);
  });

  it('crashes after the n-th write, which is durable although its call rejects', async () => {
    const store = new MemoryStore({ clock: new VirtualClock() });
    store.crashAfterWrites(2);
    await store.pools.create('a', aPoolState());
    await expect(store.pools.create('b', aPoolState())).rejects.toThrow(SimulatedCrash);
    await expect(store.pools.list()).rejects.toThrow(SimulatedCrash);
    const next = store.reopen();
    expect((await next.pools.list()).map(({ key }) => key)).toEqual(['a', 'b']);
  });

  it('rejects every call after a crash with zero writes', async () => {
    const store = new MemoryStore({ clock: new VirtualClock() });
    store.crashAfterWrites(0);
    await expect(store.pools.create('a', aPoolState())).rejects.toThrow(SimulatedCrash);
    expect(await store.reopen().pools.list()).toEqual([]);
  });

  it('reports exactly the writes that changed something', async () => {
    const writes: StoreWrite[] = [];
    const store = new MemoryStore({
      clock: new VirtualClock(),
      onWrite: (write) => writes.push(write),
    });
    const created = await store.pools.create('a', aPoolState());
    await store.pools.remove(created);
    const lease = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 5 });
    await store.leases.release(lease);
    await store.leases.release(lease);
    await store.journal.append(aJournalEntry());
    await store.journal.prune({ beforeMs: 0, keep: 5 });
    await store.identity({ id: 'i' });
    await store.identity({ id: 'j' });
    expect(writes.map(({ target, action, key }) => `${target} ${action} ${key}`)).toEqual([
      'pools create a',
      'pools remove a',
      'leases acquire l',
      'leases release l',
      'journal append 1',
      'installation create i',
    ]);
  });
});
