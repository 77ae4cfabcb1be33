// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of this folder: a temporary directory with a database path.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { Store } from '../ports/store.ts';
import { openSqliteStore, type SqliteStoreOptions } from './open-sqlite-store.ts';

export interface DatabaseFixture {
  readonly folder: string;
  readonly path: string;
  readonly clock: VirtualClock;
  readonly open: (options?: Partial<SqliteStoreOptions>) => Promise<Store>;
}

export function withDatabase(test: (fixture: DatabaseFixture) => Promise<void>) {
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

/** Changes the file outside of the store. */
export function runSql<T>(path: string, work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(path);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

/** Holds the write lock as another process would. */
export function holdWriteLock(path: string): { readonly end: () => void } {
  const database = new DatabaseSync(path);
  database.exec('BEGIN IMMEDIATE');
  return { end: () => database.close() };
}
