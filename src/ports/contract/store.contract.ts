// SPDX-License-Identifier: Apache-2.0
// What every Store must do, sentence by sentence of ports/store.ts and ports/journal.ts. Run it against each
// implementation; a fake that passes it may stand in for the real one anywhere.
import { describe, expect, it } from 'vitest';
import { aJournalEntry, aPoolState } from '../fakes/sample-records.ts';
import type { Store } from '../store.ts';
import { changesContract } from './store-changes.contract.ts';
import { codeOf, type OpenStore, onStore } from './store-harness.contract.ts';
import { journalContract } from './store-journal.contract.ts';
import { leasesContract } from './store-leases.contract.ts';
import { storeAgreesWithModel } from './store-model.contract.ts';
import { recordsContract, sharingContract } from './store-records.contract.ts';

export function storeContract(name: string, open: OpenStore): void {
  describe(`Store contract: ${name}`, () => {
    recordsContract(open);
    sharingContract(open);
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
      'changes with every write of any process, also one that writes the same',
      onStore(open, async ({ store, reopen }) => {
        const other = await reopen();
        const seen = [await store.revision()];
        const created = await other.pools.create('a', aPoolState());
        seen.push(await store.revision());
        const replaced = await store.pools.replace(created, aPoolState());
        seen.push(await store.revision());
        await other.pools.remove(replaced);
        seen.push(await store.revision());
        expect(new Set(seen).size).toBe(seen.length);
        expect(await other.revision()).toBe(seen.at(-1));
        await other.close();
      }),
    );

    it(
      'changes with nothing else',
      onStore(open, async ({ store }) => {
        const created = await store.pools.create('a', aPoolState());
        const before = await store.revision();
        const lease = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 10 });
        await store.leases.renew(lease, 10);
        await store.leases.release(lease);
        await store.journal.append(aJournalEntry());
        await store.journal.prune({ beforeMs: 0, keep: 0 });
        await store.installationId('x');
        await store.pools.list();
        await codeOf(store.pools.create('a', aPoolState()));
        await codeOf(store.pools.remove({ ...created, revision: -1 }));
        expect(await store.revision()).toBe(before);
      }),
    );
  });

  describe('installation id', () => {
    it(
      'is the first candidate for ever',
      onStore(open, async ({ store, reopen }) => {
        const other = await reopen();
        const ids = await Promise.all([store.installationId('a'), other.installationId('b')]);
        expect(new Set(ids).size).toBe(1);
        expect(['a', 'b']).toContain(ids[0]);
        expect(await other.installationId('c')).toBe(ids[0]);
        await other.close();
      }),
    );
  });

  closingContract(open);
}

function closingContract(open: OpenStore): void {
  describe('close', () => {
    it(
      'waits for writes under way',
      onStore(open, async ({ store, reopen }) => {
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
      'may be repeated, also at the same time',
      onStore(open, async ({ store }) => {
        await Promise.all([store.close(), store.close()]);
        await store.close();
      }),
    );

    it(
      'ends every later call with Cancelled',
      onStore(open, async ({ store, reopen }) => {
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
          (one) => one.revision(),
          (one) => one.changes(undefined),
          (one) => one.installationId('x'),
        ];
        for (const call of calls) expect(await codeOf(call(store))).toBe('CANCELLED');
        const next = await reopen();
        expect(await next.pools.list()).toEqual([seen]);
        expect(await next.leases.read('l')).toEqual(lease);
        await next.close();
      }),
    );
  });
}
