// SPDX-License-Identifier: Apache-2.0
import {
  chmod,
  mkdir,
  readdir,
  readFile,
  rename,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addressesInUse } from '../model/held-addresses.ts';
import { rejectionCode } from '../ports/contract/store-fixture.contract.ts';
import { aJournalEntry, aMachine, aMachineId, aPoolState } from '../ports/fakes/sample-records.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import {
  type DatabaseFixture,
  holdWriteLock,
  runSql,
  withDatabase,
} from './database-fixture.contract.ts';
import { openDatabase } from './open-sqlite-store.ts';
import { APPLICATION_ID, MIGRATIONS } from './schema.ts';

/** Creates a database with content, closes it and returns its bytes. */
async function createFilled({ open, path }: DatabaseFixture): Promise<Buffer> {
  const store = await open();
  await store.pools.create('a', aPoolState());
  for (let n = 0; n < 50; n += 1)
    await store.journal.append(aJournalEntry({ message: 'x'.repeat(500) }));
  await store.close();
  return readFile(path);
}

/** Expects open to reject and every file to stay unchanged. */
async function expectRefused(
  fixture: DatabaseFixture,
  expected: Record<string, unknown>,
): Promise<void> {
  const before = await readFiles(fixture.folder);
  await expect(fixture.open()).rejects.toMatchObject(expected);
  expect(await readFiles(fixture.folder)).toEqual(before);
}

async function readFiles(folder: string): Promise<Record<string, string>> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    await Promise.all(
      files.map(async (file) => [file, (await readFile(file)).toString('base64')] as const),
    ),
  );
}

describe('a new database', () => {
  it(
    'is readable only by its owner, including its -wal and -shm files',
    withDatabase(async ({ path, open }) => {
      const store = await open();
      await store.pools.create('a', aPoolState());
      for (const file of [path, `${path}-wal`, `${path}-shm`]) {
        expect((await stat(file)).mode & 0o777).toBe(0o600);
      }
      await store.close();
    }),
  );

  it(
    'is created with its directory, which only its owner can access',
    withDatabase(async ({ folder, open }) => {
      const store = await open({ path: join(folder, 'new', 'state.db') });
      expect((await stat(join(folder, 'new'))).mode & 0o777).toBe(0o700);
      await store.close();
    }),
  );

  it(
    'is not created when two levels of directories are missing',
    withDatabase(async ({ folder, open }) => {
      await expect(open({ path: join(folder, 'no', 'such', 'state.db') })).rejects.toMatchObject({
        code: 'STORE_UNREADABLE',
        message: expect.stringContaining(`the directory ${join(folder, 'no')} does not exist`),
      });
      expect(await readdir(folder)).toEqual([]);
    }),
  );

  it(
    'is created from an empty file',
    withDatabase(async ({ path, open }) => {
      await writeFile(path, '');
      const store = await open();
      await store.pools.create('a', aPoolState());
      await store.close();
    }),
  );

  it(
    'uses WAL, full synchronous mode and the current schema version',
    withDatabase(async ({ path, clock, open }) => {
      await (await open()).close();
      const retry = { path, clock, random: new SeededRandom(1), busyTimeoutMs: 10 };
      const database = await openDatabase({ ...retry, migrations: MIGRATIONS });
      const value = (name: string) =>
        Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
      expect(value('journal_mode')).toBe('wal');
      expect(value('synchronous')).toBe(2);
      expect(value('foreign_keys')).toBe(1);
      expect(value('application_id')).toBe(APPLICATION_ID);
      expect(value('user_version')).toBe(MIGRATIONS.length);
      database.close();
    }),
  );

  it(
    'is a file even if SQLite gives its name a special meaning',
    withDatabase(async ({ folder, open }) => {
      for (const name of [':memory:', 'file:x?mode=memory']) {
        const path = join(folder, name);
        const store = await open({ path });
        expect((await stat(path)).isFile()).toBe(true);
        await store.close();
      }
    }),
  );
});

describe('opening refuses', () => {
  it(
    'a directory',
    withDatabase(async (fixture) => {
      await mkdir(fixture.path);
      await expectRefused(fixture, {
        code: 'STORE_UNREADABLE',
        message: `the database ${fixture.path} is a directory, not a file`,
      });
    }),
  );

  it(
    'a path below a file',
    withDatabase(async ({ folder, open }) => {
      await writeFile(join(folder, 'file'), 'text');
      for (const path of [
        join(folder, 'file', 'state.db'),
        join(folder, 'file', 'deep', 'state.db'),
      ]) {
        await expect(open({ path })).rejects.toMatchObject({
          code: 'STORE_UNREADABLE',
          message: expect.stringContaining(path),
        });
      }
      expect(await readFile(join(folder, 'file'), 'utf8')).toBe('text');
    }),
  );

  it(
    'a device',
    withDatabase(async ({ open }) => {
      await expect(open({ path: '/dev/full' })).rejects.toMatchObject({
        code: 'STORE_UNREADABLE',
        message: 'the database /dev/full is not a regular file',
      });
    }),
  );

  it(
    'a circular symbolic link',
    withDatabase(async (fixture) => {
      await symlink(fixture.path, fixture.path);
      await expect(fixture.open()).rejects.toMatchObject({ code: 'STORE_UNREADABLE' });
    }),
  );

  it(
    'a directory in which not even root can create files',
    withDatabase(async ({ open }) => {
      await expect(open({ path: '/sys/kernel/pvescaler.db' })).rejects.toMatchObject({
        code: 'STORE_READ_ONLY',
        message: expect.stringContaining('/sys/kernel/pvescaler.db'),
      });
    }),
  );
});

describe('opening refuses without changing it', () => {
  it(
    'a text file',
    withDatabase(async (fixture) => {
      await writeFile(fixture.path, 'pools:\n  - name: workers\n'.repeat(200));
      await expectRefused(fixture, {
        code: 'STORE_CORRUPT',
        message: expect.stringContaining(`${fixture.path} is not a pvescaler database`),
        hint: expect.stringContaining('Correct state.path if it names another file'),
      });
    }),
  );

  it.each([1, 15, 99])('a file of %i arbitrary bytes', (length) =>
    withDatabase(async (fixture) => {
      await writeFile(fixture.path, Buffer.alloc(length, 7));
      await expectRefused(fixture, { code: 'STORE_CORRUPT' });
    })(),
  );

  it(
    'a database of another program',
    withDatabase(async (fixture) => {
      runSql(fixture.path, (database) =>
        database.exec('CREATE TABLE songs (title TEXT); PRAGMA application_id = 7'),
      );
      await expectRefused(fixture, {
        code: 'STORE_UNREADABLE',
        message: expect.stringContaining(`${fixture.path} is not a pvescaler database`),
      });
    }),
  );

  it(
    'a database without an application id',
    withDatabase(async (fixture) => {
      runSql(fixture.path, (database) => database.exec('CREATE TABLE songs (title TEXT)'));
      await expectRefused(fixture, { code: 'STORE_UNREADABLE' });
    }),
  );
});

describe('a damaged database is refused when it', () => {
  it(
    'is truncated',
    withDatabase(async (fixture) => {
      const { length } = await createFilled(fixture);
      await truncate(fixture.path, Math.floor(length / 2));
      await expectRefused(fixture, {
        code: 'STORE_CORRUPT',
        message: expect.stringContaining(fixture.path),
        hint: expect.stringContaining('Move the database aside'),
      });
    }),
  );

  it(
    'is truncated inside its first page',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      await truncate(fixture.path, 1_000);
      await expectRefused(fixture, { code: 'STORE_CORRUPT' });
    }),
  );

  it(
    'has an overwritten page',
    withDatabase(async (fixture) => {
      const bytes = await createFilled(fixture);
      bytes.fill(0xa5, 4096, 8192);
      await writeFile(fixture.path, bytes);
      await expectRefused(fixture, { code: 'STORE_CORRUPT' });
    }),
  );

  it(
    'has an empty first page',
    withDatabase(async (fixture) => {
      const bytes = await createFilled(fixture);
      bytes.fill(0, 0, 4096);
      await writeFile(fixture.path, bytes);
      await expectRefused(fixture, { code: 'STORE_CORRUPT' });
    }),
  );

  it(
    'lacks a table',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      runSql(fixture.path, (database) => database.exec('DROP TABLE drains'));
      await expectRefused(fixture, {
        code: 'STORE_CORRUPT',
        message: expect.stringContaining('no such table: drains'),
      });
    }),
  );

  it(
    'lacks a schema version',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      runSql(fixture.path, (database) => database.exec('PRAGMA user_version = 0'));
      await expectRefused(fixture, { code: 'STORE_CORRUPT' });
    }),
  );
});

describe('a database with a newer schema', () => {
  it(
    'is refused and left unchanged',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      runSql(fixture.path, (database) =>
        database.exec('PRAGMA journal_mode = DELETE; PRAGMA user_version = 99'),
      );
      await expectRefused(fixture, {
        code: 'STORE_SCHEMA_NEWER',
        message: `the database ${fixture.path} has schema 99; this version supports schemas up to ${MIGRATIONS.length}`,
      });
    }),
  );
});

describe('a database with an older schema', () => {
  const newer = [...MIGRATIONS, 'CREATE TABLE extra (x TEXT) STRICT; INSERT INTO extra VALUES (1)'];
  const migrate = ({ path, clock }: DatabaseFixture, migrations: readonly string[]) =>
    openDatabase({ path, clock, random: new SeededRandom(1), busyTimeoutMs: 100, migrations });

  it(
    'is migrated after a copy of it was made',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      const database = await migrate(fixture, newer);
      expect(database.prepare('SELECT count(*) AS n FROM extra').get()).toEqual({ n: 1 });
      database.close();
      const copy = `${fixture.path}.before-v${newer.length}`;
      expect((await stat(copy)).mode & 0o777).toBe(0o600);
      expect((await readdir(fixture.folder)).filter((name) => name.includes('unfinished'))).toEqual(
        [],
      );

      expect(await rejectionCode(fixture.open())).toBe('STORE_SCHEMA_NEWER');
      await rename(copy, fixture.path);
      const restored = await fixture.open();
      expect(await restored.pools.list()).toHaveLength(1);
      expect(await restored.journal.read()).toHaveLength(50);
      await restored.close();
    }),
  );

  it(
    'includes in the copy what is still in the write-ahead log',
    withDatabase(async (fixture) => {
      const running = await fixture.open();
      await running.pools.create('in-the-log', aPoolState());
      (await migrate(fixture, newer)).close();
      const keys = runSql(`${fixture.path}.before-v${newer.length}`, (copy) =>
        copy.prepare('SELECT key FROM pools').all(),
      );
      expect(keys).toEqual([{ key: 'in-the-log' }]);

      expect(await rejectionCode(running.pools.create('b', aPoolState()))).toBe(
        'STORE_SCHEMA_NEWER',
      );
      expect(await rejectionCode(running.pools.list())).toBe('STORE_SCHEMA_NEWER');
      await running.close();
    }),
  );

  it(
    'stays unchanged when a migration fails',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      await expect(
        migrate(fixture, [...newer, 'CREATE TABLE extra (again TEXT)']),
      ).rejects.toMatchObject({ code: 'BUG' });
      const store = await fixture.open();
      expect(await store.pools.list()).toHaveLength(1);
      await store.close();
    }),
  );

  it(
    'is not migrated when the copy fails',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      await mkdir(`${fixture.path}.before-v${newer.length}`);
      await expect(migrate(fixture, newer)).rejects.toMatchObject({ code: 'STORE_UNREADABLE' });
      await (await fixture.open()).close();
    }),
  );

  it(
    'is migrated once when two processes open it',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      const both = await Promise.all([migrate(fixture, newer), migrate(fixture, newer)]);
      expect(both[1].prepare('SELECT count(*) AS n FROM extra').get()).toEqual({ n: 1 });
      for (const database of both) database.close();
    }),
  );
});

describe('a database of the first schema version', () => {
  it(
    'is opened with all its records except addresses, and copied first',
    withDatabase(async (fixture) => {
      const exported = join(import.meta.dirname, '../cli/testing/state-export-v1.json');
      const { records } = JSON.parse(await readFile(exported, 'utf8'));
      runSql(fixture.path, (database) => {
        database.exec(`PRAGMA application_id = ${APPLICATION_ID}; ${MIGRATIONS[0]}`);
        database.exec('PRAGMA user_version = 1');
        for (const [name, values] of Object.entries<Record<string, unknown>>(records))
          for (const [key, value] of Object.entries(values))
            database
              .prepare(`INSERT INTO ${name} (key, revision, value) VALUES (?, 1, ?)`)
              .run(key, JSON.stringify(value));
      });
      const store = await fixture.open();
      for (const name of ['intents', 'machines', 'drains', 'pools'] as const) {
        const list: readonly { readonly key: string; readonly value: unknown }[] =
          await store[name].list();
        expect(Object.fromEntries(list.map(({ key, value }) => [key, value]))).toEqual(
          records[name],
        );
      }
      await store.close();
      const left = runSql(fixture.path, (database) =>
        database.prepare("SELECT name FROM sqlite_master WHERE name LIKE 'addresses%'").all(),
      );
      expect(left).toEqual([]);
      expect((await stat(`${fixture.path}.before-v${MIGRATIONS.length}`)).isFile()).toBe(true);
    }),
  );

  it(
    'keeps the addresses of VMs that were left alone, also without a record of their machine',
    withDatabase(async (fixture) => {
      const [over, removed, live] = [aMachineId(1), aMachineId(2), aMachineId(3)];
      const placement = { region: 'lab', host: 'pve1', name: 'w', diskStorage: 'local-lvm' };
      const address = { region: 'lab', pool: 'workers', leasedAt: 7 };
      const rows = [
        [
          'machines',
          over,
          aMachine({
            id: over,
            phase: 'failed',
            placement: { ...placement, vmId: 1_250, addresses: ['10.0.0.1/24'] },
          }),
        ],
        ['machines', live, aMachine({ id: live, phase: 'ready' })],
        ['addresses', 'a', { ...address, address: '10.0.0.1', machine: over, vmId: 1_250 }],
        ['addresses', 'b', { ...address, address: '10.0.0.2', machine: removed, vmId: 1_251 }],
        ['addresses', 'c', { ...address, address: '2001:db8::2', machine: removed, vmId: 1_251 }],
        ['addresses', 'd', { ...address, address: '10.0.0.3', machine: live, vmId: 1_252 }],
        [
          'addresses',
          'e',
          { ...address, address: '10.0.0.4', machine: aMachineId(4), vmId: 1_253, releasedAt: 8 },
        ],
      ] as const;
      runSql(fixture.path, (database) => {
        const older = MIGRATIONS.slice(0, 4);
        database.exec(`PRAGMA application_id = ${APPLICATION_ID}; ${older.join('\n')}`);
        database.exec(`PRAGMA user_version = ${older.length}`);
        for (const [table, key, value] of rows)
          database
            .prepare(`INSERT INTO ${table} (key, revision, value) VALUES (?, 1, ?)`)
            .run(key, JSON.stringify(value));
      });
      const store = await fixture.open();
      const machines = (await store.machines.list()).map(({ value }) => value);
      await store.close();
      expect(machines.map(({ id, phase }) => [id, phase])).toEqual([
        [over, 'failed'],
        [removed, 'gone'],
        [live, 'ready'],
      ]);
      expect(addressesInUse(machines)).toEqual(['10.0.0.1/24', '10.0.0.2', '2001:db8::2']);
    }),
  );
});

describe('openSqliteStore', () => {
  it(
    'recovers the write-ahead log of a killed process',
    withDatabase(async (fixture) => {
      const first = await fixture.open();
      await first.pools.create('a', aPoolState());
      const left = join(fixture.folder, 'left.db');
      // A killed process leaves both files.
      for (const suffix of ['', '-wal'])
        await writeFile(`${left}${suffix}`, await readFile(`${fixture.path}${suffix}`));
      await first.close();
      const second = await fixture.open({ path: left });
      expect(await second.pools.list()).toHaveLength(1);
      await second.close();
    }),
  );

  it(
    'rejects with STORE_BUSY when another process holds the lock for too long',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      const { path, clock, open } = fixture;
      const holder = holdWriteLock(path);
      const opening = expect(open({ busyTimeoutMs: 1_000 })).rejects.toMatchObject({
        code: 'STORE_BUSY',
        message: `another process has held the database ${path} for 1000 ms`,
      });
      while (await clock.advanceToNext());
      await opening;
      holder.end();
    }),
  );

  it(
    'waits for the lock without blocking',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      const holder = holdWriteLock(fixture.path);
      const opening = fixture.open();
      await fixture.clock.advance(50);
      holder.end();
      await fixture.clock.advance(1_000);
      await (await opening).close();
    }),
  );

  it(
    'stops waiting when the caller aborts',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      const holder = holdWriteLock(fixture.path);
      const abort = new AbortController();
      const opening = rejectionCode(fixture.open({ signal: abort.signal }));
      await fixture.clock.advance(50);
      abort.abort();
      expect(await opening).toBe('CANCELLED');
      holder.end();
    }),
  );

  it(
    'keeps the permissions of an existing file',
    withDatabase(async (fixture) => {
      await createFilled(fixture);
      await chmod(fixture.path, 0o640);
      await (await fixture.open()).close();
      expect((await stat(fixture.path)).mode & 0o777).toBe(0o640);
    }),
  );
});
