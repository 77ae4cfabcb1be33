// SPDX-License-Identifier: Apache-2.0
// A folder of its own for each test of this room, and what is done in it again and again.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { Store } from '../ports/store.ts';
import { openSqliteStore, type SqliteStoreOptions } from './open-sqlite-store.ts';

export interface FolderScene {
  readonly folder: string;
  readonly path: string;
  readonly clock: VirtualClock;
  readonly open: (options?: Partial<SqliteStoreOptions>) => Promise<Store>;
}

export function inFolder(test: (scene: FolderScene) => Promise<void>) {
  return async (): Promise<void> => {
    const folder = await mkdtemp(join(tmpdir(), 'pvescaler-store-'));
    const clock = new VirtualClock();
    const path = join(folder, 'state.db');
    try {
      await test({
        folder,
        path,
        clock,
        open: (options = {}) =>
          openSqliteStore({ path, clock, random: new SeededRandom(1), ...options }),
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  };
}

/** Somebody else's hand on the file. */
export function bySql<T>(path: string, work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(path);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

/** Another process in the middle of a write. */
export function holdLock(path: string): { readonly end: () => void } {
  const database = new DatabaseSync(path);
  database.exec('BEGIN IMMEDIATE');
  return { end: () => database.close() };
}
