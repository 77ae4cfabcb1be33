// SPDX-License-Identifier: Apache-2.0
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import type { StoreObserver } from '../ports/store-write.ts';
import type { BusyRetryOptions } from './busy-retry.ts';
import { DatabaseConnection } from './database-connection.ts';
import { openDatabase } from './open-database.ts';
import { MIGRATIONS } from './schema.ts';
import { SqliteStore } from './sqlite-store.ts';
import { databaseCorrupt, isMissingTable } from './store-errors.ts';

const BUSY_TIMEOUT_MS = 5_000;

export interface SqliteStoreOptions {
  readonly path: string;
  /** Used for lease expiry and for waiting on locks of other processes. */
  readonly clock: Clock;
  /** Jitter of that wait. */
  readonly random: Pick<Random, 'fraction'>;
  readonly onWrite?: StoreObserver;
  /** How long another process may hold the lock before a call rejects with STORE_BUSY. */
  readonly busyTimeoutMs?: number;
  /** How much of that time may block this thread; the rest is an asynchronous wait. */
  readonly lockWaitMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Opens the database at `path`; creates it if necessary, with its directory if only that is missing. Rejects with
 * StoreUnusable or STORE_SCHEMA_NEWER and then leaves an existing file unchanged.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const {
    clock,
    random,
    busyTimeoutMs = BUSY_TIMEOUT_MS,
    signal,
    onWrite = () => undefined,
  } = options;
  // Absolute, because SQLite does not treat `:memory:` and `file:…` as paths.
  const retry: BusyRetryOptions = { path: resolve(options.path), clock, random, busyTimeoutMs };
  const { lockWaitMs } = options;
  const database = await openDatabase({ ...retry, migrations: MIGRATIONS, signal, lockWaitMs });
  return createStore(database, retry, onWrite);
}

export function createStore(
  database: DatabaseSync,
  retry: BusyRetryOptions,
  onWrite: StoreObserver = () => undefined,
): SqliteStore {
  try {
    return new SqliteStore(new DatabaseConnection(database, retry, MIGRATIONS.length), onWrite);
  } catch (error) {
    database.close();
    throw isMissingTable(error)
      ? databaseCorrupt(retry.path, `a table of its schema is missing (${String(error)})`)
      : error;
  }
}
