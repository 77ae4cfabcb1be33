// SPDX-License-Identifier: Apache-2.0
// The contract of ports/store.ts and ports/journal.ts. It runs against every implementation, so that the fake can
// replace the real store in tests.
import { describe, expect, it } from 'vitest';
import { aJournalEntry, aPoolState } from '../fakes/sample-records.ts';
import type { Store } from '../store.ts';
import { changesContract } from './store-changes.contract.ts';
import { deferredContract } from './store-deferred.contract.ts';
import {
  expectPresent,
  type OpenStore,
  rejectionCode,
  withStore,
} from './store-fixture.contract.ts';
import { journalContract } from './store-journal.contract.ts';
import { leasesContract } from './store-leases.contract.ts';
import { storeAgreesWithModel } from './store-model.contract.ts';
import { recordsContract, sharingContract } from './store-records.contract.ts';

export function storeContract(name: string, open: OpenStore): void {
  describe(`Store contract: ${name}`, () => {
    recordsContract(open);
    sharingContract(open);
    deferredContract(open);
    changesContract(open);
    leasesContract(open);
    journalContract(open);
    wholeStoreContract(open);
    storeAgreesWithModel(open);
  });
}

function wholeStoreContract(open: OpenStore): void {
  describe('revision', () => {
    it(
      'changes with every write of any process, for one of its own even of an equal value',
      withStore(open, async ({ store, reopen }) => {
        const other = await reopen();
        const seen = [await store.revision()];
        const note = async () => {
          await store.synchronize();
          seen.push(await store.revision());
        };
        const created = await other.pools.create('a', aPoolState());
        await note();
        const same = expectPresent(await store.pools.get('a'));
        await store.pools.replace(same, aPoolState());
        await note();
        const changed = await other.pools
          .replace(created, aPoolState({ pool: 'b' }))
          .catch(async () => expectPresent(await other.pools.get('a')));
        await other.pools.remove(changed);
        await note();
        expect(new Set(seen).size).toBe(seen.length);
        await other.close();
      }),
    );

    it(
      'does not change with leases, the journal, reads or failed writes',
      withStore(open, async ({ store }) => {
        const created = await store.pools.create('a', aPoolState());
        const before = await store.revision();
        const lease = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 10 });
        await store.leases.renew(lease, 10);
        await store.leases.release(lease);
        await store.journal.append(aJournalEntry());
        await store.journal.prune({ beforeMs: 0, keep: 0 });
        await store.identity({ id: 'x' });
        await store.pools.list();
        await rejectionCode(store.pools.create('a', aPoolState()));
        await rejectionCode(store.pools.remove({ ...created, revision: -1 }));
        expect(await store.revision()).toBe(before);
      }),
    );
  });

  describe('identity', () => {
    it(
      'is always the first candidate, for each of its values',
      withStore(open, async ({ store, reopen }) => {
        const other = await reopen();
        expect(await store.identity()).toEqual({});
        const ids = await Promise.all([store.identity({ id: 'a' }), other.identity({ id: 'b' })]);
        expect(ids[0]).toEqual(ids[1]);
        expect(['a', 'b']).toContain(ids[0].id);
        expect(await other.identity({ id: 'c' })).toEqual(ids[0]);
        const bound = { ...ids[0], clusterUid: 'u' };
        expect(await other.identity({ id: 'c', clusterUid: 'u' })).toEqual(bound);
        expect(await store.identity({ clusterUid: 'v' })).toEqual(bound);
        expect(await store.identity()).toEqual(bound);
        await other.close();
      }),
    );
  });

  closingContract(open);
}

function closingContract(open: OpenStore): void {
  describe('close', () => {
    it(
      'waits for writes in progress',
      withStore(open, async ({ store, reopen }) => {
        const writes = [
          store.pools.create('a', aPoolState()),
          store.journal.append(aJournalEntry()),
          store.leases.acquire({ name: 'l', holder: 'h', durationMs: 10 }),
        ];
        await store.close();
        await Promise.all(writes);
        const next = await reopen();
        expect(await next.pools.list()).toHaveLength(1);
        expect(await next.journal.read()).toHaveLength(1);
        expect(await next.leases.read('l')).toBeDefined();
        await next.close();
      }),
    );

    it(
      'is idempotent, even concurrently',
      withStore(open, async ({ store }) => {
        await Promise.all([store.close(), store.close()]);
        await store.close();
      }),
    );

    it(
      'makes every later call reject with CANCELLED',
      withStore(open, async ({ store, reopen }) => {
        const seen = await store.pools.create('a', aPoolState());
        const lease = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 10 });
        await store.close();
        const calls: readonly ((one: Store) => Promise<unknown>)[] = [
          (one) => one.pools.get('a'),
          (one) => one.machines.list(),
          (one) => one.pools.create('b', aPoolState()),
          (one) => one.pools.replace(seen, aPoolState({ pool: 'b' })),
          (one) => one.pools.remove(seen),
          (one) => one.leases.acquire({ name: 'm', holder: 'h', durationMs: 10 }),
          (one) => one.leases.renew(lease, 10),
          (one) => one.leases.release(lease),
          (one) => one.leases.read('l'),
          (one) => one.journal.append(aJournalEntry()),
          (one) => one.journal.read(),
          (one) => one.journal.prune({ beforeMs: 0, keep: 0 }),
          (one) => one.synchronize(),
          (one) => one.revision(),
          (one) => one.changes(undefined),
          (one) => one.identity({ id: 'x' }),
        ];
        for (const call of calls) expect(await rejectionCode(call(store))).toBe('CANCELLED');
        const next = await reopen();
        expect((await next.pools.list()).map(({ value }) => value)).toEqual([seen.value]);
        expect(await next.leases.read('l')).toEqual(lease);
        await next.close();
      }),
    );
  });
}
