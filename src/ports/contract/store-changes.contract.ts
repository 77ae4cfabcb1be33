// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aMachine, anIntent, aPoolState } from '../fakes/sample-records.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import type { Store, Versioned } from '../store.ts';
import {
  aborted,
  expectPresent,
  type OpenStore,
  rejectionCode,
  withStore,
} from './store-fixture.contract.ts';

const NO_CHANGES = { intents: [], machines: [], drains: [], pools: [], removed: [] };

export function changesContract(open: OpenStore): void {
  describe('changes', () => {
    it(
      'contain all records without a revision, and none after the newest revision',
      withStore(open, async ({ store }) => {
        expect(await store.changes(undefined)).toEqual({ ...NO_CHANGES, revision: 0 });
        const machine = await store.machines.create('m', aMachine());
        const intent = await store.intents.create('i', anIntent());
        const revision = await store.revision();
        const all = { ...NO_CHANGES, machines: [machine], intents: [intent], revision };
        expect(await store.changes(undefined)).toEqual(all);
        expect(await store.changes(revision)).toEqual({ ...NO_CHANGES, revision });
      }),
    );

    it(
      'contain what other processes wrote and removed since the revision',
      withStore(open, async ({ store, reopen }) => {
        const other = await reopen();
        await store.pools.create('a', aPoolState());
        await store.pools.create('b', aPoolState());
        const since = await store.revision();
        await other.synchronize();
        const a = expectPresent(await other.pools.get('a'));
        await other.pools.replace(a, aPoolState({ pool: 'x' }));
        await other.pools.remove(expectPresent(await other.pools.get('b')));
        await store.synchronize();
        const changed = expectPresent(await store.pools.get('a'));
        expect(changed.value.pool).toBe('x');
        expect(await store.changes(since)).toEqual({
          ...NO_CHANGES,
          revision: await store.revision(),
          pools: [changed],
          removed: [{ collection: 'pools', key: 'b' }],
        });
        await other.close();
      }),
    );

    it(
      'reject with CANCELLED after an abort',
      withStore(open, async ({ store }) => {
        expect(await rejectionCode(store.changes(undefined, { signal: aborted() }))).toBe(
          'CANCELLED',
        );
      }),
    );

    it('bring a copy of the store up to date', async () => {
      const step = fc.record({
        key: fc.constantFrom('a', 'b', 'c'),
        remove: fc.boolean(),
        update: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
          const { store, cleanup } = await open(new VirtualClock());
          try {
            const copy = new StoreCopy(store);
            for (const { key, remove, update } of steps) {
              await write(store, key, remove);
              if (update) await copy.update();
            }
            await copy.update();
            expect(copy.pools()).toEqual(await store.pools.list());
          } finally {
            await cleanup();
          }
        }),
        { numRuns: 30 },
      );
    });
  });
}

async function write(store: Store, key: string, remove: boolean): Promise<void> {
  const seen = await store.pools.get(key);
  if (seen === undefined) await store.pools.create(key, aPoolState());
  else if (remove) await store.pools.remove(seen);
  else await store.pools.replace(seen, aPoolState());
}

class StoreCopy {
  readonly #store: Store;
  readonly #pools = new Map<string, Versioned<unknown>>();
  #revision: number | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  async update(): Promise<void> {
    const changes = expectPresent(await this.#store.changes(this.#revision));
    this.#revision = changes.revision;
    for (const { key } of changes.removed) this.#pools.delete(key);
    for (const record of changes.pools) this.#pools.set(record.key, record);
  }

  pools(): readonly Versioned<unknown>[] {
    return [...this.#pools.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }
}
