// SPDX-License-Identifier: Apache-2.0
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import type { StoreObserver } from '../ports/store-write.ts';
import type { BusyRetry } from './busy-retry.ts';
import { Connection } from './connection.ts';
import { openDatabase } from './open-database.ts';
import { MIGRATIONS } from './schema.ts';
import { SqliteStore } from './sqlite-store.ts';
import { corrupt, isMissingTable } from './store-errors.ts';

const PATIENCE_MS = 5_000;

export interface SqliteStoreOptions {
  readonly path: string;
  /** Judges leases; also what waiting for another process's lock is measured and slept on. */
  readonly clock: Clock;
  /** Jitter of that waiting. */
  readonly random: Pick<Random, 'fraction'>;
  readonly onWrite?: StoreObserver;
  /** How long another process may hold the database before a call gives up with STORE_BUSY. */
  readonly patienceMs?: number;
  /** How much of that may stop everything else in this thread; what is left is waited aside. */
  readonly lockWaitMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Opens the database at `path`, making it (and its folder, if that one's parent exists) when there is none.
 * Rejects with StoreUnusable, or STORE_SCHEMA_NEWER, and then has changed nothing about an existing file.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { clock, random, patienceMs = PATIENCE_MS, signal, onWrite = () => undefined } = options;
  // Absolute, because SQLite takes `:memory:` and `file:…` for something else than a path.
  const retry: BusyRetry = { path: resolve(options.path), clock, random, patienceMs };
  const { lockWaitMs } = options;
  const database = await openDatabase({ ...retry, migrations: MIGRATIONS, signal, lockWaitMs });
  return storeOver(database, retry, onWrite);
}

export function storeOver(
  database: DatabaseSync,
  retry: BusyRetry,
  onWrite: StoreObserver = () => undefined,
): SqliteStore {
  try {
    return new SqliteStore(new Connection(database, retry, MIGRATIONS.length), onWrite);
  } catch (error) {
    database.close();
    throw isMissingTable(error)
      ? corrupt(retry.path, `it lacks a table of its schema (${String(error)})`)
      : error;
  }
}
