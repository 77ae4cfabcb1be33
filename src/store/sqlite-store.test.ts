// SPDX-License-Identifier: Apache-2.0
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { storeContract } from '../ports/contract/store.contract.ts';
import { rejectionCode } from '../ports/contract/store-fixture.contract.ts';
import { aJournalEntry, aMachine, aPoolState } from '../ports/fakes/sample-records.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import type { Store } from '../ports/store.ts';
import {
  type DatabaseFixture,
  holdWriteLock,
  runSql,
  withDatabase,
} from './database-fixture.contract.ts';
import { createStore, openDatabase, openSqliteStore } from './open-sqlite-store.ts';

import { MIGRATIONS } from './schema.ts';
import type { SqliteStore } from './sqlite-store.ts';

storeContract('SQLite', async (clock) => {
  const folder = await mkdtemp(join(tmpdir(), 'pvescaler-store-'));
  const reopen = () =>
    openSqliteStore({ path: join(folder, 'state.db'), clock, random: new SeededRandom(1) });
  const store = await reopen();
  const cleanup = async () => {
    await store.close();
    await rm(folder, { recursive: true });
  };
  return { store, reopen, cleanup };
});

/** A store with its connection, so that a test can make the connection fail. */
async function openWithConnection({
  path,
  clock,
}: DatabaseFixture): Promise<{ store: SqliteStore; database: DatabaseSync }> {
  const retry = { path, clock, random: new SeededRandom(1), busyTimeoutMs: 1_000 };
  const database = await openDatabase({ ...retry, migrations: MIGRATIONS });
  return { store: createStore(database, retry), database };
}

describe('an invalid row', () => {
  const damages: readonly [string, string, (store: Store) => Promise<unknown>][] = [
    ['not JSON', `UPDATE machines SET value = '{'`, (store) => store.machines.get('m')],
    [
      'an invalid machine',
      `UPDATE machines SET value = '{"id":1}'`,
      (store) => store.machines.list(),
    ],
    [
      'an unknown phase',
      `UPDATE machines SET value = replace(value, 'requested"', 'lost"')`,
      (store) => store.machines.list(),
    ],
  ];

  it.each(damages)('is reported with its key and left unchanged: %s', (_name, sql, read) =>
    withDatabase(async ({ path, open }) => {
      const store = await open();
      await store.machines.create('m', aMachine());
      const rows = () =>
        runSql(path, (database) => database.prepare('SELECT * FROM machines').all());
      runSql(path, (database) => database.exec(sql));
      const before = rows();
      await expect(read(store)).rejects.toMatchObject({
        code: 'STORE_CORRUPT',
        message: expect.stringMatching(/table machines, key m: /),
      });
      expect(rows()).toEqual(before);
      await store.close();
    })(),
  );

  it(
    'does not affect other rows',
    withDatabase(async ({ path, open }) => {
      const store = await open();
      await store.pools.create('a', aPoolState());
      await store.pools.create('b', aPoolState());
      runSql(path, (database) => database.exec(`UPDATE pools SET value = '[]' WHERE key = 'a'`));
      expect((await store.pools.get('b'))?.key).toBe('b');
      await store.close();
    }),
  );

  it(
    'in the journal is reported with its sequence number',
    withDatabase(async ({ path, open }) => {
      const store = await open();
      await store.journal.append(aJournalEntry());
      runSql(path, (database) => database.exec(`UPDATE journal SET value = 'null'`));
      await expect(store.journal.read()).rejects.toMatchObject({
        code: 'STORE_CORRUPT',
        message: expect.stringContaining('table journal, key 1: '),
      });
      await store.close();
    }),
  );

  it(
    'missing from the installation table is reported as STORE_CORRUPT',
    withDatabase(async ({ path, open }) => {
      const store = await open();
      runSql(path, (database) => database.exec('DELETE FROM installation'));
      expect(await rejectionCode(store.revision())).toBe('STORE_CORRUPT');
      expect(await rejectionCode(store.pools.create('a', aPoolState()))).toBe('STORE_CORRUPT');
      await store.close();
    }),
  );
});

describe('a full disk', () => {
  it(
    'is reported as STORE_FULL, changes nothing, and is recoverable',
    withDatabase(async (fixture) => {
      const { store, database } = await openWithConnection(fixture);
      const first = await store.pools.create('a', aPoolState());
      database.exec('PRAGMA max_page_count = 1');
      const large = aPoolState({ pool: 'x'.repeat(100_000) });
      await expect(store.pools.create('b', large)).rejects.toMatchObject({
        code: 'STORE_FULL',
        message: expect.stringContaining(fixture.path),
      });
      expect(await rejectionCode(store.pools.replace(first, large))).toBe('STORE_FULL');
      expect(
        await rejectionCode(store.journal.append(aJournalEntry({ message: 'x'.repeat(100_000) }))),
      ).toBe('STORE_FULL');
      expect(await store.pools.list()).toEqual([first]);
      database.exec('PRAGMA max_page_count = 1000000');
      await store.pools.create('b', large);
      await store.close();
    }),
  );
});

describe('a read-only database', () => {
  it(
    'rejects writes with STORE_READ_ONLY and allows reads',
    withDatabase(async (fixture) => {
      const { store, database } = await openWithConnection(fixture);
      await store.pools.create('a', aPoolState());
      database.exec('PRAGMA query_only = ON');
      expect(await rejectionCode(store.pools.create('b', aPoolState()))).toBe('STORE_READ_ONLY');
      expect(await store.pools.list()).toHaveLength(1);
      await store.close();
    }),
  );

  it(
    'rejects writes with STORE_READ_ONLY on a read-only connection',
    withDatabase(async (fixture) => {
      const open = await fixture.open();
      const retry = {
        path: fixture.path,
        clock: fixture.clock,
        random: new SeededRandom(1),
        busyTimeoutMs: 10,
      };
      const reader = createStore(new DatabaseSync(fixture.path, { readOnly: true }), retry);
      expect(await rejectionCode(reader.pools.create('b', aPoolState()))).toBe('STORE_READ_ONLY');
      await reader.close();
      await open.close();
    }),
  );
});

describe('a database file moved while open', () => {
  it(
    'rejects writes, which would be lost',
    withDatabase(async ({ path, open }) => {
      const old = await open();
      await old.pools.create('a', aPoolState());
      const lease = await old.leases.acquire({ name: 'l', holder: 'h', durationMs: 1_000 });
      await rename(path, `${path}.aside`);
      expect(await rejectionCode(old.pools.create('b', aPoolState()))).toBe('STORE_UNREADABLE');
      const reopened = await open();
      await expect(old.leases.renew(lease, 1_000)).rejects.toMatchObject({
        code: 'STORE_UNREADABLE',
        message: `the database ${path} was moved, replaced or deleted while it was open`,
        hint: expect.stringContaining('Restart'),
      });
      expect(await reopened.pools.list()).toEqual([]);
      await reopened.close();
      await old.close();
    }),
  );
});

describe('a write lock of another process', () => {
  it(
    'delays a write until it is released',
    withDatabase(async ({ path, clock, open }) => {
      const store = await open();
      const holder = holdWriteLock(path);
      const write = store.pools.create('a', aPoolState());
      await clock.advance(100);
      expect(await store.pools.list()).toEqual([]);
      holder.end();
      await clock.advance(1_000);
      expect((await write).key).toBe('a');
      await store.close();
    }),
  );

  it(
    'makes a write reject with STORE_BUSY after the timeout',
    withDatabase(async ({ path, clock, open }) => {
      const store = await open({ busyTimeoutMs: 500 });
      const holder = holdWriteLock(path);
      const write = rejectionCode(store.pools.create('a', aPoolState()));
      while (await clock.advanceToNext());
      expect(await write).toBe('STORE_BUSY');
      expect(clock.monotonic()).toBeLessThan(1_000);
      holder.end();
      expect(await store.pools.list()).toEqual([]);
      await store.close();
    }),
  );

  it(
    'does not delay a caller that aborts',
    withDatabase(async ({ path, clock, open }) => {
      const store = await open();
      const holder = holdWriteLock(path);
      const abort = new AbortController();
      const write = rejectionCode(store.pools.create('a', aPoolState(), { signal: abort.signal }));
      await clock.advance(20);
      abort.abort();
      expect(await write).toBe('CANCELLED');
      holder.end();
      expect(await store.pools.list()).toEqual([]);
      await store.close();
    }),
  );

  it(
    'delays close until the pending write completes',
    withDatabase(async ({ path, clock, open }) => {
      const store = await open();
      const holder = holdWriteLock(path);
      const write = store.pools.create('a', aPoolState());
      const closed = store.close();
      await clock.advance(20);
      holder.end();
      await clock.advance(1_000);
      expect((await write).key).toBe('a');
      await closed;
      expect(await rejectionCode(store.pools.list())).toBe('CANCELLED');
    }),
  );

  it(
    'makes a fenced write fail when the lease expires meanwhile',
    withDatabase(async ({ path, clock, open }) => {
      const store = await open();
      const fence = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 50 });
      const holder = holdWriteLock(path);
      const write = rejectionCode(store.pools.create('a', aPoolState(), { fence }));
      await clock.advance(60);
      holder.end();
      await clock.advance(1_000);
      expect(await write).toBe('LEASE_LOST');
      await store.close();
    }),
  );
});

describe('a loop that only awaits the store', () => {
  it(
    'yields to timers and sockets',
    withDatabase(async ({ open, clock }) => {
      const sleeps: number[] = [];
      let elapsed = 0;
      const store = await open({
        clock: {
          now: () => clock.now(),
          // Each read of the clock adds a millisecond, as if each call took that long.
          monotonic: () => (elapsed += 1),
          sleep: async (ms) => void sleeps.push(ms),
        },
      });
      for (let n = 0; n < 50; n += 1) await store.pools.get('a');
      expect(sleeps).toEqual([1, 1]);
      await store.close();
    }),
  );
});

describe('onWrite', () => {
  it(
    'is called for each durable write before the call resolves',
    withDatabase(async ({ path, open }) => {
      const reported: string[] = [];
      const store = await open({
        onWrite: ({ target, action, key }) => {
          const [row] = runSql(path, (database) =>
            database.prepare('SELECT count(*) AS n FROM pools').all(),
          );
          reported.push(`${target} ${action} ${key} (${String(row?.['n'])} pools)`);
        },
      });
      const created = await store.pools.create('a', aPoolState());
      const replaced = await store.pools.replace(created, aPoolState());
      await store.pools.remove(replaced);
      const lease = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 5 });
      await store.leases.renew(lease, 5);
      await store.leases.release(lease);
      await store.leases.release(lease);
      await store.journal.append(aJournalEntry());
      await store.journal.prune({ beforeMs: 0, keep: 1 });
      await store.journal.prune({ beforeMs: 0, keep: 0 });
      await store.identity({ id: 'i' });
      await store.identity({ id: 'j' });
      await store.close();
      expect(reported).toEqual([
        'pools create a (1 pools)',
        'pools replace a (1 pools)',
        'pools remove a (0 pools)',
        'leases acquire l (0 pools)',
        'leases renew l (0 pools)',
        'leases release l (0 pools)',
        'journal append 1 (0 pools)',
        'journal prune 1 (0 pools)',
        'installation create i (0 pools)',
      ]);
    }),
  );

  it(
    'can make the call reject, although the write is durable',
    withDatabase(async ({ open }) => {
      const crash = new Error('simulated crash');
      const store = await open({
        onWrite: () => {
          throw crash;
        },
      });
      await expect(store.pools.create('a', aPoolState())).rejects.toBe(crash);
      expect(await store.pools.list()).toHaveLength(1);
      await store.close();
    }),
  );
});
