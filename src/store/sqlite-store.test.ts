// SPDX-License-Identifier: Apache-2.0
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { storeContract } from '../ports/contract/store.contract.ts';
import { codeOf } from '../ports/contract/store-harness.contract.ts';
import { aJournalEntry, aMachine, aPoolState } from '../ports/fakes/sample-records.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import type { Store } from '../ports/store.ts';
import { openDatabase } from './open-database.ts';
import { openSqliteStore, storeOver } from './open-sqlite-store.ts';
import { MIGRATIONS } from './schema.ts';
import type { SqliteStore } from './sqlite-store.ts';
import { bySql, type FolderScene, holdLock, inFolder } from './store-scene.contract.ts';

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

/** A store together with the connection under it, to make that one fail. */
async function withDatabase({
  path,
  clock,
}: FolderScene): Promise<{ store: SqliteStore; database: DatabaseSync }> {
  const retry = { path, clock, random: new SeededRandom(1), patienceMs: 1_000 };
  const database = await openDatabase({ ...retry, migrations: MIGRATIONS });
  return { store: storeOver(database, retry), database };
}

describe('a row that cannot be read', () => {
  const damages: readonly [string, string, (store: Store) => Promise<unknown>][] = [
    ['not JSON', `UPDATE machines SET value = '{'`, (store) => store.machines.get('m')],
    ['another shape', `UPDATE machines SET value = '{"id":1}'`, (store) => store.machines.list()],
    [
      'an unknown phase',
      `UPDATE machines SET value = replace(value, 'requested"', 'lost"')`,
      (store) => store.machines.list(),
    ],
  ];

  it.each(damages)('is named and left alone: %s', (_name, sql, read) =>
    inFolder(async ({ path, open }) => {
      const store = await open();
      await store.machines.create('m', aMachine());
      const rows = () =>
        bySql(path, (database) => database.prepare('SELECT * FROM machines').all());
      bySql(path, (database) => database.exec(sql));
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
    'does not stand in the way of others',
    inFolder(async ({ path, open }) => {
      const store = await open();
      await store.pools.create('a', aPoolState());
      await store.pools.create('b', aPoolState());
      bySql(path, (database) => database.exec(`UPDATE pools SET value = '[]' WHERE key = 'a'`));
      expect((await store.pools.get('b'))?.key).toBe('b');
      await store.close();
    }),
  );

  it(
    'of the journal is named too',
    inFolder(async ({ path, open }) => {
      const store = await open();
      await store.journal.append(aJournalEntry());
      bySql(path, (database) => database.exec(`UPDATE journal SET value = 'null'`));
      await expect(store.journal.read()).rejects.toMatchObject({
        code: 'STORE_CORRUPT',
        message: expect.stringContaining('table journal, key 1: '),
      });
      await store.close();
    }),
  );

  it(
    'of the installation is missed',
    inFolder(async ({ path, open }) => {
      const store = await open();
      bySql(path, (database) => database.exec('DELETE FROM installation'));
      expect(await codeOf(store.revision())).toBe('STORE_CORRUPT');
      expect(await codeOf(store.pools.create('a', aPoolState()))).toBe('STORE_CORRUPT');
      await store.close();
    }),
  );
});

describe('a full disk', () => {
  it(
    'is told as such, changes nothing, and passes',
    inFolder(async (scene) => {
      const { store, database } = await withDatabase(scene);
      const first = await store.pools.create('a', aPoolState());
      database.exec('PRAGMA max_page_count = 1');
      const large = aPoolState({ pool: 'x'.repeat(100_000) });
      await expect(store.pools.create('b', large)).rejects.toMatchObject({
        code: 'STORE_FULL',
        message: expect.stringContaining(scene.path),
      });
      expect(await codeOf(store.pools.replace(first, large))).toBe('STORE_FULL');
      expect(
        await codeOf(store.journal.append(aJournalEntry({ message: 'x'.repeat(100_000) }))),
      ).toBe('STORE_FULL');
      expect(await store.pools.list()).toEqual([first]);
      database.exec('PRAGMA max_page_count = 1000000');
      await store.pools.create('b', large);
      await store.close();
    }),
  );
});

describe('a file that became read-only', () => {
  it(
    'is told as such; reading goes on',
    inFolder(async (scene) => {
      const { store, database } = await withDatabase(scene);
      await store.pools.create('a', aPoolState());
      database.exec('PRAGMA query_only = ON');
      expect(await codeOf(store.pools.create('b', aPoolState()))).toBe('STORE_READ_ONLY');
      expect(await store.pools.list()).toHaveLength(1);
      await store.close();
    }),
  );

  it(
    'is told as such by a connection that SQLite itself opened read-only',
    inFolder(async (scene) => {
      const open = await scene.open();
      const retry = {
        path: scene.path,
        clock: scene.clock,
        random: new SeededRandom(1),
        patienceMs: 10,
      };
      const reader = storeOver(new DatabaseSync(scene.path, { readOnly: true }), retry);
      expect(await codeOf(reader.pools.create('b', aPoolState()))).toBe('STORE_READ_ONLY');
      await reader.close();
      await open.close();
    }),
  );
});

describe('a file moved aside while it is open', () => {
  it(
    'takes no more writes, which would be lost',
    inFolder(async ({ path, open }) => {
      const old = await open();
      await old.pools.create('a', aPoolState());
      const lease = await old.leases.acquire({ name: 'l', holder: 'h', durationMs: 1_000 });
      await rename(path, `${path}.aside`);
      expect(await codeOf(old.pools.create('b', aPoolState()))).toBe('STORE_UNREADABLE');
      const anew = await open();
      await expect(old.leases.renew(lease, 1_000)).rejects.toMatchObject({
        code: 'STORE_UNREADABLE',
        message: `the database ${path} was moved, replaced or deleted while it was open`,
        hint: expect.stringContaining('Restart'),
      });
      expect(await anew.pools.list()).toEqual([]);
      await anew.close();
      await old.close();
    }),
  );
});

describe('another process in the middle of a write', () => {
  it(
    'is waited for; then the write happens',
    inFolder(async ({ path, clock, open }) => {
      const store = await open();
      const holder = holdLock(path);
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
    'is given up on after a while, and nothing was written',
    inFolder(async ({ path, clock, open }) => {
      const store = await open({ patienceMs: 500 });
      const holder = holdLock(path);
      const write = codeOf(store.pools.create('a', aPoolState()));
      while (await clock.advanceToNext());
      expect(await write).toBe('STORE_BUSY');
      expect(clock.monotonic()).toBeLessThan(1_000);
      holder.end();
      expect(await store.pools.list()).toEqual([]);
      await store.close();
    }),
  );

  it(
    'does not keep a caller that gives up',
    inFolder(async ({ path, clock, open }) => {
      const store = await open();
      const holder = holdLock(path);
      const abort = new AbortController();
      const write = codeOf(store.pools.create('a', aPoolState(), { signal: abort.signal }));
      await clock.advance(20);
      abort.abort();
      expect(await write).toBe('CANCELLED');
      holder.end();
      expect(await store.pools.list()).toEqual([]);
      await store.close();
    }),
  );

  it(
    'is waited for by close, since the write was promised',
    inFolder(async ({ path, clock, open }) => {
      const store = await open();
      const holder = holdLock(path);
      const write = store.pools.create('a', aPoolState());
      const closed = store.close();
      await clock.advance(20);
      holder.end();
      await clock.advance(1_000);
      expect((await write).key).toBe('a');
      await closed;
      expect(await codeOf(store.pools.list())).toBe('CANCELLED');
    }),
  );

  it(
    'makes a lease expire for a fenced write that waited too long',
    inFolder(async ({ path, clock, open }) => {
      const store = await open();
      const fence = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 50 });
      const holder = holdLock(path);
      const write = codeOf(store.pools.create('a', aPoolState(), { fence }));
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
    'lets timers and sockets have their turn',
    inFolder(async ({ open, clock }) => {
      const sleeps: number[] = [];
      let elapsed = 0;
      const store = await open({
        clock: {
          now: () => clock.now(),
          // Each look at the clock is a millisecond later: that long takes each call.
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

describe('the observer', () => {
  it(
    'hears of each durable write before its caller does',
    inFolder(async ({ path, open }) => {
      const heard: string[] = [];
      const store = await open({
        onWrite: ({ target, action, key }) => {
          const [row] = bySql(path, (database) =>
            database.prepare('SELECT count(*) AS n FROM pools').all(),
          );
          heard.push(`${target} ${action} ${key} (${String(row?.['n'])} pools)`);
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
      await store.installationId('i');
      await store.installationId('j');
      await store.close();
      expect(heard).toEqual([
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
    'may end the caller; the write stays',
    inFolder(async ({ open }) => {
      const crash = new Error('crashed here');
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
