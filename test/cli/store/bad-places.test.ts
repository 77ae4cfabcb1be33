// SPDX-License-Identifier: Apache-2.0
// Places where permissions or the disk forbid it, met for real: by a process that is not root, and where the
// kernel lets us have mounts of our own, on a disk that is full or read-only.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aPoolState } from '../../../src/ports/fakes/sample-records.ts';
import { openSqliteStore } from '../../../src/store/index.ts';
import { systemClock, systemRandom } from '../../../src/system/index.ts';
import type { Said } from './said.ts';
import { WORKER, WorkerProcess } from './worker-process.ts';

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pvescaler-places-'));
  await chmod(folder, 0o755);
  await mkdir(join(folder, 'state'));
  path = join(folder, 'state', 'state.db');
});

afterEach(async () => {
  await chmod(join(folder, 'state'), 0o755);
  await rm(folder, { recursive: true });
});

async function makeDatabase(): Promise<void> {
  const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
  await store.pools.create('first', aPoolState());
  await store.close();
}

async function fingerprint(): Promise<readonly string[]> {
  const names = await readdir(join(folder, 'state'));
  return Promise.all(
    names.map(async (name) => {
      const bytes = await readFile(join(folder, 'state', name));
      return `${name} ${createHash('sha256').update(bytes).digest('hex')}`;
    }),
  );
}

interface Place {
  readonly name: string;
  readonly hasDatabase: boolean;
  readonly folderMode: number;
  readonly fileMode: number;
  readonly code: string;
}

const places: readonly Place[] = [
  {
    name: 'a read-only folder without a database',
    hasDatabase: false,
    folderMode: 0o555,
    fileMode: 0o666,
    code: 'STORE_READ_ONLY',
  },
  {
    name: 'a read-only folder with a database',
    hasDatabase: true,
    folderMode: 0o555,
    fileMode: 0o666,
    code: 'STORE_READ_ONLY',
  },
  {
    name: 'a read-only database',
    hasDatabase: true,
    folderMode: 0o777,
    fileMode: 0o444,
    code: 'STORE_READ_ONLY',
  },
  {
    name: 'a database that may not be read',
    hasDatabase: true,
    folderMode: 0o777,
    fileMode: 0o000,
    code: 'STORE_UNREADABLE',
  },
  {
    name: 'a folder that may not be entered',
    hasDatabase: true,
    folderMode: 0o000,
    fileMode: 0o666,
    code: 'STORE_UNREADABLE',
  },
  {
    name: 'a place where all is well',
    hasDatabase: true,
    folderMode: 0o777,
    fileMode: 0o666,
    code: 'none',
  },
];

describe('permissions', () => {
  it.each(places)('$name: $code', async ({ hasDatabase, folderMode, fileMode, code }) => {
    if (hasDatabase) {
      await makeDatabase();
      await chmod(path, fileMode);
    }
    const before = process.getuid?.() === 0 ? await fingerprint() : undefined;
    await chmod(join(folder, 'state'), folderMode);
    const worker = new WorkerProcess(['open-as-user', path]);
    await worker.ended;
    expect(worker.said).toEqual([{ event: 'outcome', code }]);
    if (before !== undefined && code !== 'none') expect(await fingerprint()).toEqual(before);
  });
});

/** A script in a mount namespace of its own: no mount is seen, or left, outside. */
function inOwnMounts(script: string): {
  readonly isDone: boolean;
  readonly said: readonly Said[];
} {
  const { status, stdout } = spawnSync(
    'unshare',
    ['-m', 'sh', '-ec', script, 'sh', join(folder, 'state'), process.execPath, WORKER],
    { encoding: 'utf8' },
  );
  const lines = (stdout ?? '').split('\n').filter((line) => line !== '');
  return { isDone: status === 0, said: lines.map((line): Said => JSON.parse(line)) };
}

describe('disks', () => {
  const mount = 'mount -t tmpfs -o size=400k none "$1"';

  it('a full one: what was acknowledged is there, what was refused is not', (context) => {
    if (!inOwnMounts(mount).isDone) context.skip('mounts are not permitted here');
    const { isDone, said } = inOwnMounts(`${mount}; "$2" "$3" fill "$1/state.db"`);
    expect(isDone).toBe(true);
    const [filled] = said;
    expect(filled).toMatchObject({ event: 'filled', code: 'STORE_FULL' });
    if (filled?.event !== 'filled') return;
    expect(filled.kept).toBeGreaterThan(0);
    expect(filled.found).toBe(filled.kept);
  });

  it('one without room for a new database', (context) => {
    if (!inOwnMounts(mount).isDone) context.skip('mounts are not permitted here');
    const { said } = inOwnMounts(
      `${mount}; head -c 1000000 /dev/zero > "$1/ballast" 2>/dev/null || true; "$2" "$3" open-and-write "$1/state.db"`,
    );
    expect(said).toEqual([{ event: 'outcome', code: 'STORE_FULL' }]);
  });

  it('a read-only one, with a database and without', (context) => {
    if (!inOwnMounts(mount).isDone) context.skip('mounts are not permitted here');
    const { isDone, said } = inOwnMounts(
      `${mount}; "$2" "$3" open-and-write "$1/state.db"; mount -o remount,ro "$1"; "$2" "$3" open-and-write "$1/state.db"; "$2" "$3" open-and-write "$1/other.db"`,
    );
    expect(isDone).toBe(true);
    expect(said).toEqual(
      ['none', 'STORE_READ_ONLY', 'STORE_READ_ONLY'].map((code) => ({ event: 'outcome', code })),
    );
  });
});
