// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MachineId } from '../../model/machine.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aMachine, aMachineId, anIntent, aPoolState } from '../../ports/fakes/sample-records.ts';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import type { Store } from '../../ports/store.ts';
import { RecordCache } from './record-cache.ts';

function aStore(): MemoryStore {
  return new MemoryStore({ clock: new VirtualClock() });
}

const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);

async function expectInStep(cache: RecordCache, store: Store): Promise<void> {
  const machines = (await store.machines.list()).map(({ value }) => value);
  expect([...cache.machines.all()].sort(byId)).toEqual(machines);
  const intents = (await store.intents.list()).map(({ value }) => value);
  expect([...cache.intents.all()].sort(byId)).toEqual(intents);
}

describe('what this process writes', () => {
  it('is there as soon as it is durable, without following', async () => {
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

  it('is not there when the write was refused', async () => {
    const store = aStore();
    const cache = new RecordCache(store);
    await cache.refresh();
    const signal = AbortSignal.abort();
    const refused = cache.machines.put(aMachineId(1), aMachine({ id: aMachineId(1) }), { signal });
    await expect(refused).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(cache.machines.all()).toEqual([]);
  });
});

describe('what others write', () => {
  it('is there after following, also when it was read half way', async () => {
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

  it('is read as a whole when too much has happened since', async () => {
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

  it('does not bring back what we removed while it was being read', async () => {
    const store = aStore();
    const other = store.reopen();
    const cache = new RecordCache(store);
    await cache.refresh();
    await cache.machines.put(aMachineId(1), aMachine({ id: aMachineId(1) }), {});
    await other.pools.create('p', aPoolState());
    const following = cache.refresh();
    await cache.machines.remove(aMachineId(1), {});
    await following;
    expect(cache.machines.all()).toEqual([]);
  });
});

interface Step {
  readonly what: 'machine' | 'intent' | 'remove';
  readonly number: number;
  readonly pool: string;
}

const step = fc.record({
  who: fc.constantFrom('us' as const, 'them' as const),
  what: fc.constantFrom('machine' as const, 'intent' as const, 'remove' as const),
  number: fc.integer({ min: 1, max: 4 }),
  pool: fc.constantFrom('a', 'b'),
  awaited: fc.boolean(),
});

describe('any order of writes', () => {
  it('ends in the picture the store has', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const store = aStore();
        const [ours, theirs] = [new RecordCache(store), new RecordCache(store.reopen())];
        await Promise.all([ours.refresh(), theirs.refresh()]);
        const running: Promise<unknown>[] = [];
        for (const { who, awaited, ...rest } of steps) {
          const cache = who === 'us' ? ours : theirs;
          const call = cache
            .refresh()
            .then(() => act(cache, rest))
            .catch(() => undefined);
          running.push(call);
          if (awaited) await call;
        }
        await Promise.all(running);
        await Promise.all([ours.refresh(), theirs.refresh()]);
        await expectInStep(ours, store);
        await expectInStep(theirs, store);
        expectRosterInStep(ours);
      }),
      { numRuns: 100 },
    );
  });
});

function act(cache: RecordCache, { what, number, pool }: Step) {
  const id = aMachineId(number);
  switch (what) {
    case 'machine':
      return cache.machines.put(id, aMachine({ id, pool }), {});
    case 'intent':
      return cache.intents.put(`i${number}`, anIntent({ id: `i${number}`, pool }), {});
    case 'remove':
      return cache.machines.remove(id, {});
  }
}

function expectRosterInStep({ index, machines }: RecordCache): void {
  const inPools = [...index.machinesOf('a'), ...index.machinesOf('b')];
  expect(inPools.toSorted(byId)).toEqual([...machines.all()].sort(byId));
}

describe('the roster', () => {
  const placement = {
    region: 'lab',
    host: 'pve1',
    vmId: 1250,
    name: 'worker-1',
    diskStorage: 'x',
    addresses: [],
  };
  const put = async (
    cache: RecordCache,
    overrides: Parameters<typeof aMachine>[0] & { id: MachineId },
  ) => cache.machines.put(overrides.id, aMachine(overrides), {});

  it('finds a machine by VM, name and provider id; a living one before one that is over', async () => {
    const cache = new RecordCache(aStore());
    await cache.refresh();
    await put(cache, { id: aMachineId(1), phase: 'gone', placement, requestedAt: 1 });
    await put(cache, {
      id: aMachineId(2),
      phase: 'ready',
      placement,
      nodeName: 'node-x',
      providerId: 'k3s://node-x',
      requestedAt: 0,
    });
    const { index } = cache;
    expect(index.byVm('lab', 1250)?.id).toBe(aMachineId(2));
    expect(index.byVm('lab', 1251)).toBeUndefined();
    expect(index.byName('worker-1')?.id).toBe(aMachineId(2));
    expect(index.byName('node-x')?.id).toBe(aMachineId(2));
    expect(index.byProviderId('k3s://node-x')?.id).toBe(aMachineId(2));
    await cache.machines.remove(aMachineId(2), {});
    expect(index.byVm('lab', 1250)?.id).toBe(aMachineId(1));
    expect(index.byProviderId('k3s://node-x')).toBeUndefined();
  });

  it('counts who is coming and who is leaving', async () => {
    const cache = new RecordCache(aStore());
    await cache.refresh();
    const { index } = cache;
    const before = index.version('a');
    const create = anIntent({ id: 'c', pool: 'a', machines: [aMachineId(1), aMachineId(2)] });
    await cache.intents.put('c', create, {});
    expect(index.membersOf('a')).toHaveLength(2);
    expect(index.requested(aMachineId(1))?.id).toBe('c');
    const { size: _, ...common } = anIntent({ id: 'd', pool: 'a', machines: [aMachineId(1)] });
    await cache.intents.put('d', { ...common, kind: 'cancel' }, {});
    expect(index.membersOf('a').map(({ id }) => id)).toEqual([aMachineId(2)]);
    expect(index.isDeletionRequested(aMachineId(1))).toBe(true);
    await cache.intents.put('d', { ...common, kind: 'cancel', state: 'done' }, {});
    await cache.intents.put('c', { ...create, state: 'done' }, {});
    expect(index.membersOf('a')).toEqual([]);
    expect(index.isDeletionRequested(aMachineId(1))).toBe(false);
    expect(index.version('a')).toBeGreaterThan(before);
  });
});
