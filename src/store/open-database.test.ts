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
import { codeOf } from '../ports/contract/store-harness.contract.ts';
import { aJournalEntry, aPoolState } from '../ports/fakes/sample-records.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { openDatabase } from './open-database.ts';
import { APPLICATION_ID, MIGRATIONS } from './schema.ts';
import { bySql, type FolderScene, holdLock, inFolder } from './store-scene.contract.ts';

/** A database with content, closed properly. */
async function filled({ open, path }: FolderScene): Promise<Buffer> {
  const store = await open();
  await store.pools.create('a', aPoolState());
  for (let n = 0; n < 50; n += 1)
    await store.journal.append(aJournalEntry({ message: 'x'.repeat(500) }));
  await store.close();
  return readFile(path);
}

/** Opening is refused so, and every file is afterwards as it was before. */
async function expectRefused(scene: FolderScene, expected: Record<string, unknown>): Promise<void> {
  const before = await contents(scene.folder);
  await expect(scene.open()).rejects.toMatchObject(expected);
  expect(await contents(scene.folder)).toEqual(before);
}

async function contents(folder: string): Promise<Record<string, string>> {
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
    'is readable by its owner alone, its helper files too',
    inFolder(async ({ path, open }) => {
      const store = await open();
      await store.pools.create('a', aPoolState());
      for (const file of [path, `${path}-wal`, `${path}-shm`]) {
        expect((await stat(file)).mode & 0o777).toBe(0o600);
      }
      await store.close();
    }),
  );

  it(
    'gets its folder made, for its owner alone',
    inFolder(async ({ folder, open }) => {
      const store = await open({ path: join(folder, 'new', 'state.db') });
      expect((await stat(join(folder, 'new'))).mode & 0o777).toBe(0o700);
      await store.close();
    }),
  );

  it(
    'does not get two folders made: that is a typing mistake or a missing mount',
    inFolder(async ({ folder, open }) => {
      await expect(open({ path: join(folder, 'no', 'such', 'state.db') })).rejects.toMatchObject({
        code: 'STORE_UNREADABLE',
        message: expect.stringContaining(`there is no folder ${join(folder, 'no')}`),
      });
      expect(await readdir(folder)).toEqual([]);
    }),
  );

  it(
    'is made from a file of no bytes',
    inFolder(async ({ path, open }) => {
      await writeFile(path, '');
      const store = await open();
      await store.pools.create('a', aPoolState());
      await store.close();
    }),
  );

  it(
    'writes through to the disk and keeps a log',
    inFolder(async ({ path, clock, open }) => {
      await (await open()).close();
      const retry = { path, clock, random: new SeededRandom(1), patienceMs: 10 };
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
    'is a file also where SQLite would see something else in the name',
    inFolder(async ({ folder, open }) => {
      for (const name of [':memory:', 'file:x?mode=memory']) {
        const path = join(folder, name);
        const store = await open({ path });
        expect((await stat(path)).isFile()).toBe(true);
        await store.close();
      }
    }),
  );
});

describe('a path that cannot be a database', () => {
  it(
    'a folder',
    inFolder(async (scene) => {
      await mkdir(scene.path);
      await expectRefused(scene, {
        code: 'STORE_UNREADABLE',
        message: `${scene.path} is a folder, not a file`,
      });
    }),
  );

  it(
    'something below a file',
    inFolder(async ({ folder, open }) => {
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
    inFolder(async ({ open }) => {
      await expect(open({ path: '/dev/full' })).rejects.toMatchObject({
        code: 'STORE_UNREADABLE',
        message: '/dev/full is not a regular file',
      });
    }),
  );

  it(
    'a link in a circle',
    inFolder(async (scene) => {
      await symlink(scene.path, scene.path);
      await expect(scene.open()).rejects.toMatchObject({ code: 'STORE_UNREADABLE' });
    }),
  );

  it(
    'a folder in which nobody may create anything, not even root',
    inFolder(async ({ open }) => {
      await expect(open({ path: '/sys/kernel/pvescaler.db' })).rejects.toMatchObject({
        code: 'STORE_READ_ONLY',
        message: expect.stringContaining('/sys/kernel/pvescaler.db'),
      });
    }),
  );
});

describe('a file that is not our database', () => {
  it(
    'text',
    inFolder(async (scene) => {
      await writeFile(scene.path, 'pools:\n  - name: workers\n'.repeat(200));
      await expectRefused(scene, {
        code: 'STORE_CORRUPT',
        message: expect.stringContaining(`${scene.path} is not a pvescaler database`),
        hint: expect.stringContaining('state.path names another file by mistake'),
      });
    }),
  );

  it.each([1, 15, 99])('%i bytes of something', (length) =>
    inFolder(async (scene) => {
      await writeFile(scene.path, Buffer.alloc(length, 7));
      await expectRefused(scene, { code: 'STORE_CORRUPT' });
    })(),
  );

  it(
    'a database of another program',
    inFolder(async (scene) => {
      bySql(scene.path, (database) =>
        database.exec('CREATE TABLE songs (title TEXT); PRAGMA application_id = 7'),
      );
      await expectRefused(scene, {
        code: 'STORE_UNREADABLE',
        message: expect.stringContaining(`${scene.path} is not a pvescaler database`),
      });
    }),
  );

  it(
    'a database of a program that does not name itself',
    inFolder(async (scene) => {
      bySql(scene.path, (database) => database.exec('CREATE TABLE songs (title TEXT)'));
      await expectRefused(scene, { code: 'STORE_UNREADABLE' });
    }),
  );
});

describe('a damaged database', () => {
  it(
    'cut short',
    inFolder(async (scene) => {
      const { length } = await filled(scene);
      await truncate(scene.path, Math.floor(length / 2));
      await expectRefused(scene, {
        code: 'STORE_CORRUPT',
        message: expect.stringContaining(scene.path),
        hint: expect.stringContaining('Move the database aside'),
      });
    }),
  );

  it(
    'cut inside its first page',
    inFolder(async (scene) => {
      await filled(scene);
      await truncate(scene.path, 1_000);
      await expectRefused(scene, { code: 'STORE_CORRUPT' });
    }),
  );

  it(
    'with a page of noise',
    inFolder(async (scene) => {
      const bytes = await filled(scene);
      bytes.fill(0xa5, 4096, 8192);
      await writeFile(scene.path, bytes);
      await expectRefused(scene, { code: 'STORE_CORRUPT' });
    }),
  );

  it(
    'with its first page gone',
    inFolder(async (scene) => {
      const bytes = await filled(scene);
      bytes.fill(0, 0, 4096);
      await writeFile(scene.path, bytes);
      await expectRefused(scene, { code: 'STORE_CORRUPT' });
    }),
  );

  it(
    'without one of its tables',
    inFolder(async (scene) => {
      await filled(scene);
      bySql(scene.path, (database) => database.exec('DROP TABLE drains'));
      await expectRefused(scene, {
        code: 'STORE_CORRUPT',
        message: expect.stringContaining('no such table: drains'),
      });
    }),
  );

  it(
    'without a schema version',
    inFolder(async (scene) => {
      await filled(scene);
      bySql(scene.path, (database) => database.exec('PRAGMA user_version = 0'));
      await expectRefused(scene, { code: 'STORE_CORRUPT' });
    }),
  );
});

describe('a newer schema', () => {
  it(
    'is refused and left as it is',
    inFolder(async (scene) => {
      await filled(scene);
      bySql(scene.path, (database) =>
        database.exec('PRAGMA journal_mode = DELETE; PRAGMA user_version = 99'),
      );
      await expectRefused(scene, {
        code: 'STORE_SCHEMA_NEWER',
        message: `the database ${scene.path} has schema 99; this version knows up to ${MIGRATIONS.length}`,
      });
    }),
  );
});

describe('an older schema', () => {
  const newer = [...MIGRATIONS, 'CREATE TABLE extra (x TEXT) STRICT; INSERT INTO extra VALUES (1)'];
  const migrate = ({ path, clock }: FolderScene, migrations: readonly string[]) =>
    openDatabase({ path, clock, random: new SeededRandom(1), patienceMs: 100, migrations });

  it(
    'is migrated, after a copy was made beside it',
    inFolder(async (scene) => {
      await filled(scene);
      const database = await migrate(scene, newer);
      expect(database.prepare('SELECT count(*) AS n FROM extra').get()).toEqual({ n: 1 });
      database.close();
      const copy = `${scene.path}.before-v${newer.length}`;
      expect((await stat(copy)).mode & 0o777).toBe(0o600);
      expect((await readdir(scene.folder)).filter((name) => name.includes('unfinished'))).toEqual(
        [],
      );

      expect(await codeOf(scene.open())).toBe('STORE_SCHEMA_NEWER');
      await rename(copy, scene.path);
      const restored = await scene.open();
      expect(await restored.pools.list()).toHaveLength(1);
      expect(await restored.journal.read()).toHaveLength(50);
      await restored.close();
    }),
  );

  it(
    'takes what another process has not yet moved out of its log into the copy',
    inFolder(async (scene) => {
      const running = await scene.open();
      await running.pools.create('in-the-log', aPoolState());
      (await migrate(scene, newer)).close();
      const keys = bySql(`${scene.path}.before-v${newer.length}`, (copy) =>
        copy.prepare('SELECT key FROM pools').all(),
      );
      expect(keys).toEqual([{ key: 'in-the-log' }]);

      expect(await codeOf(running.pools.create('b', aPoolState()))).toBe('STORE_SCHEMA_NEWER');
      expect(await codeOf(running.pools.list())).toBe('STORE_SCHEMA_NEWER');
      await running.close();
    }),
  );

  it(
    'stays what it was when a step fails',
    inFolder(async (scene) => {
      await filled(scene);
      await expect(
        migrate(scene, [...newer, 'CREATE TABLE extra (again TEXT)']),
      ).rejects.toMatchObject({ code: 'BUG' });
      const store = await scene.open();
      expect(await store.pools.list()).toHaveLength(1);
      await store.close();
    }),
  );

  it(
    'is not migrated when the copy cannot be made',
    inFolder(async (scene) => {
      await filled(scene);
      await mkdir(`${scene.path}.before-v${newer.length}`);
      await expect(migrate(scene, newer)).rejects.toMatchObject({ code: 'STORE_UNREADABLE' });
      await (await scene.open()).close();
    }),
  );

  it(
    'is migrated once, whoever comes second',
    inFolder(async (scene) => {
      await filled(scene);
      const both = await Promise.all([migrate(scene, newer), migrate(scene, newer)]);
      expect(both[1].prepare('SELECT count(*) AS n FROM extra').get()).toEqual({ n: 1 });
      for (const database of both) database.close();
    }),
  );
});

describe('opening', () => {
  it(
    'goes on with a log that a killed process left',
    inFolder(async (scene) => {
      const first = await scene.open();
      await first.pools.create('a', aPoolState());
      const left = join(scene.folder, 'left.db');
      // What a process that was killed leaves: both files, nothing closed.
      for (const suffix of ['', '-wal'])
        await writeFile(`${left}${suffix}`, await readFile(`${scene.path}${suffix}`));
      await first.close();
      const second = await scene.open({ path: left });
      expect(await second.pools.list()).toHaveLength(1);
      await second.close();
    }),
  );

  it(
    'gives up when another process holds the database for too long',
    inFolder(async (scene) => {
      await filled(scene);
      const { path, clock, open } = scene;
      const holder = holdLock(path);
      const opening = expect(open({ patienceMs: 1_000 })).rejects.toMatchObject({
        code: 'STORE_BUSY',
        message: `another process has held the database ${path} for 1000 ms`,
      });
      while (await clock.advanceToNext());
      await opening;
      holder.end();
    }),
  );

  it(
    'waits for another process without blocking, then goes on',
    inFolder(async (scene) => {
      await filled(scene);
      const holder = holdLock(scene.path);
      const opening = scene.open();
      await scene.clock.advance(50);
      holder.end();
      await scene.clock.advance(1_000);
      await (await opening).close();
    }),
  );

  it(
    'does not wait for a caller that gave up',
    inFolder(async (scene) => {
      await filled(scene);
      const holder = holdLock(scene.path);
      const abort = new AbortController();
      const opening = codeOf(scene.open({ signal: abort.signal }));
      await scene.clock.advance(50);
      abort.abort();
      expect(await opening).toBe('CANCELLED');
      holder.end();
    }),
  );

  it(
    'leaves the mode of an existing file alone',
    inFolder(async (scene) => {
      await filled(scene);
      await chmod(scene.path, 0o640);
      await (await scene.open()).close();
      expect((await stat(scene.path)).mode & 0o777).toBe(0o640);
    }),
  );
});
