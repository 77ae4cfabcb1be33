// SPDX-License-Identifier: Apache-2.0
// Opens databases on paths without permission, as a user other than root, and on full or read-only disks, where the
// kernel permits a mount namespace.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aPoolState } from '../../../src/ports/fakes/sample-records.ts';
import { openSqliteStore } from '../../../src/store/index.ts';
import { systemClock, systemRandom } from '../../../src/system/index.ts';
import { WORKER, WorkerProcess } from './worker-process.ts';
import type { WorkerReport } from './worker-report.ts';

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

interface PathCase {
  readonly name: string;
  readonly hasDatabase: boolean;
  readonly folderMode: number;
  readonly fileMode: number;
  readonly code: string;
}

const pathCases: readonly PathCase[] = [
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
    name: 'an unreadable database',
    hasDatabase: true,
    folderMode: 0o777,
    fileMode: 0o000,
    code: 'STORE_UNREADABLE',
  },
  {
    name: 'an inaccessible folder',
    hasDatabase: true,
    folderMode: 0o000,
    fileMode: 0o666,
    code: 'STORE_UNREADABLE',
  },
  {
    name: 'a writable database',
    hasDatabase: true,
    folderMode: 0o777,
    fileMode: 0o666,
    code: 'none',
  },
];

describe('opening a store without permission', () => {
  it.each(pathCases)(
    '$name results in $code',
    async ({ hasDatabase, folderMode, fileMode, code }) => {
      if (hasDatabase) {
        await makeDatabase();
        await chmod(path, fileMode);
      }
      const before = process.getuid?.() === 0 ? await fingerprint() : undefined;
      await chmod(join(folder, 'state'), folderMode);
      const worker = new WorkerProcess(['open-as-user', path]);
      await worker.ended;
      expect(worker.reports).toEqual([{ event: 'outcome', code }]);
      if (before !== undefined && code !== 'none') expect(await fingerprint()).toEqual(before);
    },
  );
});

/** Runs the script in a new mount namespace: its mounts are invisible outside and end with it. */
function runInMountNamespace(script: string): {
  readonly isDone: boolean;
  readonly report: readonly WorkerReport[];
} {
  const { status, stdout } = spawnSync(
    'unshare',
    ['-m', 'sh', '-ec', script, 'sh', join(folder, 'state'), process.execPath, WORKER],
    { encoding: 'utf8' },
  );
  const lines = (stdout ?? '').split('\n').filter((line) => line !== '');
  return { isDone: status === 0, report: lines.map((line): WorkerReport => JSON.parse(line)) };
}

describe('a store on an unusable disk', () => {
  const mount = 'mount -t tmpfs -o size=400k none "$1"';

  it('keeps acknowledged writes and no refused ones when the disk is full', (context) => {
    if (!runInMountNamespace(mount).isDone) context.skip('mounts are not permitted here');
    const { isDone, report } = runInMountNamespace(`${mount}; "$2" "$3" fill "$1/state.db"`);
    expect(isDone).toBe(true);
    const [filled] = report;
    expect(filled).toMatchObject({ event: 'filled', code: 'STORE_FULL' });
    if (filled?.event !== 'filled') return;
    expect(filled.kept).toBeGreaterThan(0);
    expect(filled.found).toBe(filled.kept);
  });

  it('reports STORE_FULL when a new database does not fit', (context) => {
    if (!runInMountNamespace(mount).isDone) context.skip('mounts are not permitted here');
    const { report } = runInMountNamespace(
      `${mount}; head -c 1000000 /dev/zero > "$1/ballast" 2>/dev/null || true; "$2" "$3" open-and-write "$1/state.db"`,
    );
    expect(report).toEqual([{ event: 'outcome', code: 'STORE_FULL' }]);
  });

  it('reports STORE_READ_ONLY on a read-only disk, with and without a database', (context) => {
    if (!runInMountNamespace(mount).isDone) context.skip('mounts are not permitted here');
    const { isDone, report } = runInMountNamespace(
      `${mount}; "$2" "$3" open-and-write "$1/state.db"; mount -o remount,ro "$1"; "$2" "$3" open-and-write "$1/state.db"; "$2" "$3" open-and-write "$1/other.db"`,
    );
    expect(isDone).toBe(true);
    expect(report).toEqual(
      ['none', 'STORE_READ_ONLY', 'STORE_READ_ONLY'].map((code) => ({ event: 'outcome', code })),
    );
  });
});
