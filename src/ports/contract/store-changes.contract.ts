// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aMachine, anIntent, aPoolState } from '../fakes/sample-records.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import type { Store, Versioned } from '../store.ts';
import { aborted, codeOf, type OpenStore, onStore, present } from './store-harness.contract.ts';

const NOTHING = { intents: [], machines: [], addresses: [], drains: [], pools: [], removed: [] };

export function changesContract(open: OpenStore): void {
  describe('changes', () => {
    it(
      'are everything without a revision, and nothing after the newest',
      onStore(open, async ({ store }) => {
        expect(await store.changes(undefined)).toEqual({ ...NOTHING, revision: 0 });
        const machine = await store.machines.create('m', aMachine());
        const intent = await store.intents.create('i', anIntent());
        const revision = await store.revision();
        const all = { ...NOTHING, machines: [machine], intents: [intent], revision };
        expect(await store.changes(undefined)).toEqual(all);
        expect(await store.changes(revision)).toEqual({ ...NOTHING, revision });
      }),
    );

    it(
      'name what others wrote and removed since',
      onStore(open, async ({ store, reopen }) => {
        const other = await reopen();
        const a = await store.pools.create('a', aPoolState());
        await store.pools.create('b', aPoolState());
        const since = await store.revision();
        const changed = await other.pools.replace(a, aPoolState({ pool: 'x' }));
        await other.pools.remove(present(await other.pools.get('b')));
        expect(await store.changes(since)).toEqual({
          ...NOTHING,
          revision: await store.revision(),
          pools: [changed],
          removed: [{ collection: 'pools', key: 'b' }],
        });
        await other.close();
      }),
    );

    it(
      'are refused to a caller that gave up',
      onStore(open, async ({ store }) => {
        expect(await codeOf(store.changes(undefined, { signal: aborted() }))).toBe('CANCELLED');
      }),
    );

    it('put on a picture of then make the picture of now', async () => {
      const step = fc.record({
        key: fc.constantFrom('a', 'b', 'c'),
        remove: fc.boolean(),
        look: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
          const { store, cleanup } = await open(new VirtualClock());
          try {
            const picture = new Picture(store);
            for (const { key, remove, look } of steps) {
              await write(store, key, remove);
              if (look) await picture.follow();
            }
            await picture.follow();
            expect(picture.pools()).toEqual(await store.pools.list());
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

class Picture {
  readonly #store: Store;
  readonly #pools = new Map<string, Versioned<unknown>>();
  #revision: number | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  async follow(): Promise<void> {
    const changes = present(await this.#store.changes(this.#revision));
    this.#revision = changes.revision;
    for (const { key } of changes.removed) this.#pools.delete(key);
    for (const record of changes.pools) this.#pools.set(record.key, record);
  }

  pools(): readonly Versioned<unknown>[] {
    return [...this.#pools.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }
}
