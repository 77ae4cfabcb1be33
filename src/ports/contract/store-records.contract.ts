// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aDrain, aMachine, aMachineId, anIntent, aPoolState } from '../fakes/sample-records.ts';
import type { Collection, Store } from '../store.ts';
import {
  aborted,
  countOutcomes,
  expectPresent,
  type OpenStore,
  rejectionCode,
  withStore,
} from './store-fixture.contract.ts';

const size = { cpu: 4, memoryBytes: 8e9, diskBytes: 4e10 };

/** Per collection, a value with every optional field. */
const roundTrips: readonly [string, (store: Store) => Promise<void>][] = [
  ['intents (create)', (store) => roundTrip(store.intents, anIntent({ size }))],
  [
    'intents (delete)',
    (store) => {
      const { size: _, ...intent } = anIntent();
      return roundTrip(store.intents, { ...intent, kind: 'delete', state: 'done' });
    },
  ],
  [
    'machines',
    (store) =>
      roundTrip(
        store.machines,
        aMachine({
          phase: 'deleting',
          intent: 'intent-1',
          placement: {
            region: 'home',
            host: 'pve-1',
            vmId: 901,
            name: 'workers-00000000',
            diskStorage: 'local-lvm',
            addresses: ['10.0.0.5/24', '2001:db8::5/64'],
          },
          task: { upid: 'UPID:pve-1:0001', kind: 'create', host: 'pve-1', startedAt: 5 },
          seedVolume: 'local:iso/seed.iso',
          nodeName: 'workers-00000000',
          providerId: 'proxmox://home/901',
          failure: {
            code: 'TASK_FAILED',
            message: 'naïve “quotes” \u{1F600}',
            at: 7,
            phase: 'creating',
          },
          deletionReason: 'it failed',
          isVmLeft: true,
        }),
      ),
  ],
  [
    'drains',
    (store) =>
      roundTrip(
        store.drains,
        aDrain({ state: 'evicting', blockedBy: [{ object: 'default/web-0', reason: 'budget' }] }),
      ),
  ],
  [
    'pools',
    (store) =>
      roundTrip(
        store.pools,
        aPoolState({
          backoff: { failures: 3, since: 1, until: 2, code: 'TASK_FAILED', message: 'again' },
          allocatable: {
            '2x4x20': {
              cpuMilli: 1900,
              memoryBytes: 3e9,
              ephemeralStorageBytes: 1e10,
              pods: 110,
              learnedAt: 9,
            },
          },
        }),
      ),
  ],
];

async function roundTrip<T>(collection: Collection<T>, value: T): Promise<void> {
  const created = await collection.create('a', value);
  expect(created).toEqual({ key: 'a', value, revision: created.revision });
  expect(await collection.get('a')).toEqual(created);
  expect(await collection.list()).toEqual([created]);
}

export function recordsContract(open: OpenStore): void {
  describe('records', () => {
    it.each(roundTrips)('keep every field of %s', (_name, check) =>
      withStore(open, ({ store }) => check(store))(),
    );

    it(
      'return undefined for a missing key and an empty list for an empty collection',
      withStore(open, async ({ store }) => {
        expect(await store.machines.get('missing')).toBeUndefined();
        expect(await store.machines.list()).toEqual([]);
      }),
    );

    it(
      'of different collections are independent',
      withStore(open, async ({ store }) => {
        await store.machines.create('same', aMachine());
        await store.drains.create('same', aDrain());
        expect(await store.pools.get('same')).toBeUndefined();
        expect((await store.drains.get('same'))?.value).toEqual(aDrain());
      }),
    );

    it(
      'are listed by key in code unit order',
      withStore(open, async ({ store }) => {
        // U+FFFD sorts after the surrogates of U+1F600 in code units, before it in UTF-8.
        const keys = ['b', '\u{1F600}', 'a/2', '\uFFFD', 'a/10', 'Z', 'a', 'é'];
        for (const key of keys) await store.pools.create(key, aPoolState());
        const listed = (await store.pools.list()).map(({ key }) => key);
        expect(listed).toEqual(['Z', 'a', 'a/10', 'a/2', 'b', 'é', '\u{1F600}', '\uFFFD']);
      }),
    );

    it(
      'cannot be created twice, whatever the value',
      withStore(open, async ({ store }) => {
        const first = await store.pools.create('a', aPoolState());
        expect(await rejectionCode(store.pools.create('a', aPoolState()))).toBe('RECORD_EXISTS');
        expect(await rejectionCode(store.pools.create('a', aPoolState({ pool: 'b' })))).toBe(
          'RECORD_EXISTS',
        );
        expect(await store.pools.get('a')).toEqual(first);
      }),
    );

    it(
      'are replaced and removed only at their newest revision',
      withStore(open, async ({ store }) => {
        const first = await store.pools.create('a', aPoolState());
        const second = await store.pools.replace(first, aPoolState({ pool: 'b' }));
        expect(second.revision).not.toBe(first.revision);
        expect(await rejectionCode(store.pools.replace(first, aPoolState({ pool: 'c' })))).toBe(
          'RECORD_CHANGED',
        );
        expect(await rejectionCode(store.pools.remove(first))).toBe('RECORD_CHANGED');
        expect(await store.pools.get('a')).toEqual(second);
        await store.pools.remove(second);
        expect(await store.pools.get('a')).toBeUndefined();
      }),
    );

    it(
      'reject changes with RECORD_NOT_FOUND after removal',
      withStore(open, async ({ store }) => {
        const seen = await store.pools.create('a', aPoolState());
        await store.pools.remove(seen);
        expect(await rejectionCode(store.pools.replace(seen, aPoolState()))).toBe(
          'RECORD_NOT_FOUND',
        );
        expect(await rejectionCode(store.pools.remove(seen))).toBe('RECORD_NOT_FOUND');
        expect(await store.pools.get('a')).toBeUndefined();
      }),
    );

    it(
      'created again under the same key have a different revision',
      withStore(open, async ({ store }) => {
        const seen = await store.pools.create('a', aPoolState());
        await store.pools.remove(seen);
        const recreated = await store.pools.create('a', aPoolState());
        expect(await rejectionCode(store.pools.replace(seen, aPoolState({ pool: 'b' })))).toBe(
          'RECORD_CHANGED',
        );
        expect(await store.pools.get('a')).toEqual(recreated);
      }),
    );

    it(
      'share no object with their callers',
      withStore(open, async ({ store }) => {
        const machines = [aMachineId(1)];
        const created = await store.intents.create('a', anIntent({ machines }));
        machines.push(aMachineId(2));
        const read = await store.intents.get('a');
        expect(read?.value.machines).toEqual([aMachineId(1)]);
        for (const seen of [created, read]) {
          expect(() => Object.assign(seen ?? {}, { revision: 0 })).toThrow(TypeError);
          expect(() => Object.assign(seen?.value ?? {}, { pool: 'x' })).toThrow(TypeError);
          expect(() => Object.assign(seen?.value.machines ?? {}, { 0: 'x' })).toThrow(TypeError);
        }
      }),
    );

    it(
      'are refused when invalid',
      withStore(open, async ({ store }) => {
        const seen = await store.machines.create('a', aMachine());
        const before = await store.revision();
        expect(
          await rejectionCode(store.machines.create('b', aMachine({ requestedAt: Number.NaN }))),
        ).toBe('BUG');
        expect(await rejectionCode(store.machines.replace(seen, aMachine({ attempts: 0.5 })))).toBe(
          'BUG',
        );
        expect(await rejectionCode(store.pools.create('', aPoolState()))).toBe('BUG');
        expect(await rejectionCode(store.pools.create('\uD800', aPoolState()))).toBe('BUG');
        expect(await store.machines.list()).toEqual([seen]);
        expect(await store.revision()).toBe(before);
      }),
    );

    it(
      'do not change when the caller has cancelled',
      withStore(open, async ({ store }) => {
        const signal = aborted();
        const seen = await store.pools.create('a', aPoolState());
        const calls = [
          () => store.pools.create('b', aPoolState(), { signal }),
          () => store.pools.replace(seen, aPoolState({ pool: 'b' }), { signal }),
          () => store.pools.remove(seen, { signal }),
          () => store.pools.get('a', { signal }),
          () => store.pools.list({ signal }),
          () => store.revision({ signal }),
        ];
        for (const call of calls) expect(await rejectionCode(call())).toBe('CANCELLED');
        expect(await store.pools.list()).toEqual([seen]);
      }),
    );
  });
}

async function valuesOf(store: Store): Promise<readonly unknown[]> {
  return (await store.pools.list()).map(({ value }) => value);
}

export function sharingContract(open: OpenStore): void {
  describe('several processes', () => {
    it(
      'see the writes of each other after synchronize, and never overwrite them',
      withStore(open, async ({ store, reopen }) => {
        const other = await reopen();
        const seen = await store.pools.create('a', aPoolState());
        await other.synchronize();
        const same = expectPresent(await other.pools.get('a'));
        expect(same.value).toEqual(seen.value);
        await other.pools.replace(same, aPoolState({ pool: 'b' }));
        expect(await rejectionCode(store.pools.replace(seen, aPoolState()))).toBe('RECORD_CHANGED');
        expect(await rejectionCode(store.pools.remove(seen))).toBe('RECORD_CHANGED');
        await store.pools.remove(expectPresent(await store.pools.get('a')));
        await other.synchronize();
        expect(await other.pools.list()).toEqual([]);
        await other.close();
      }),
    );

    it(
      'find all data again after the last one closed',
      withStore(open, async ({ store, reopen }) => {
        const pool = await store.pools.create('a', aPoolState());
        const lease = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 10 });
        const identity = await store.identity({ id: 'one', clusterUid: 'uid' });
        await store.close();
        const next = await reopen();
        expect(await valuesOf(next)).toEqual([pool.value]);
        expect(await next.leases.read('l')).toEqual(lease);
        expect(await next.identity({ id: 'two' })).toEqual(identity);
        await next.close();
      }),
    );

    it(
      'let exactly one of several concurrent writes succeed: create, replace, remove',
      withStore(open, async ({ store, reopen }) => {
        const stores = [store, await reopen(), await reopen()];
        const each = <T>(call: (one: Store, index: number) => Promise<T>) =>
          countOutcomes(
            Array.from({ length: 12 }, (_, index) => call(stores[index % 3] ?? store, index)),
          );

        const created = await each((one, index) =>
          one.pools.create('a', aPoolState({ pool: `${index}` })),
        );
        expect(created).toEqual({
          resolved: 1,
          codes: Array.from({ length: 11 }, () => 'RECORD_EXISTS'),
        });

        const readAll = async () => {
          await Promise.all(stores.map((one) => one.synchronize()));
          const read = await Promise.all(stores.map((one) => one.pools.get('a')));
          return (index: number) => expectPresent(read[index % 3]);
        };
        const seen = await readAll();
        const replaced = await each((one, index) =>
          one.pools.replace(seen(index), aPoolState({ pool: `r${index}` })),
        );
        expect(replaced).toEqual({
          resolved: 1,
          codes: Array.from({ length: 11 }, () => 'RECORD_CHANGED'),
        });

        const newest = await readAll();
        const removed = await each((one, index) => one.pools.remove(newest(index)));
        expect(removed).toEqual({
          resolved: 1,
          codes: Array.from({ length: 11 }, () => 'RECORD_NOT_FOUND'),
        });
        await Promise.all(stores.slice(1).map((one) => one.close()));
      }),
    );
  });
}
