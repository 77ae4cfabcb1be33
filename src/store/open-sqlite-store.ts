// SPDX-License-Identifier: Apache-2.0
import { resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../ports/clock.ts';
import { StoreUnusable } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import type { StoreObserver } from '../ports/store-write.ts';
import { copyBeforeMigration } from './copy-database.ts';
import {
  type BusyRetryOptions,
  DatabaseConnection,
  inTransaction,
  retryWhileBusy,
} from './database-connection.ts';
import { type DatabaseFile, prepareDatabaseFile } from './database-file.ts';
import { APPLICATION_ID, MIGRATIONS } from './schema.ts';
import { SqliteStore } from './sqlite-store.ts';
import { databaseCorrupt, isMissingTable, schemaNewer } from './store-errors.ts';

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

// Opens a database with the current schema, or rejects with a specific error. A file is only read until it is known to be
// empty or a pvescaler database; a rejection leaves it unchanged.

/** SQLite's own wait blocks the process, so it only covers one commit of another process. */
const LOCK_WAIT_MS = 20;

/**
 * An integrity check reads every page, about a millisecond per megabyte. Databases up to this size are checked at every
 * start; larger ones only if they may not have been closed properly.
 */
const MAX_ALWAYS_CHECKED_BYTES = 64 * 1024 * 1024;

interface OpenDatabaseOptions extends BusyRetryOptions {
  readonly migrations: readonly string[];
  readonly signal?: AbortSignal | undefined;
  readonly lockWaitMs?: number | undefined;
}

export async function openDatabase(options: OpenDatabaseOptions): Promise<DatabaseSync> {
  const { path, signal } = options;
  const file = prepareDatabaseFile(path);
  const database = await retryWhileBusy(options, signal, () => connect(path, options.lockWaitMs));
  try {
    await retryWhileBusy(options, signal, () => assertPvescalerDatabase(database, options));
    if (needsCheck(file)) await retryWhileBusy(options, signal, () => assertIntact(database, path));
    await retryWhileBusy(options, signal, () => setModes(database));
    await retryWhileBusy(options, signal, () => migrate(database, options));
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function connect(path: string, lockWaitMs = LOCK_WAIT_MS): DatabaseSync {
  return new DatabaseSync(path, {
    timeout: lockWaitMs,
    enableForeignKeyConstraints: true,
    defensive: true,
  });
}

function pragma(database: DatabaseSync, name: string): unknown {
  const row = database.prepare(`PRAGMA ${name}`).get();
  return row && Object.values(row)[0];
}

function readSchemaVersion(database: DatabaseSync): number {
  return Number(pragma(database, 'user_version'));
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function assertPvescalerDatabase(
  database: DatabaseSync,
  { path, migrations }: OpenDatabaseOptions,
): void {
  const applicationId = pragma(database, 'application_id');
  const schema = readSchemaVersion(database);
  if (applicationId === 0 && schema === 0 && isEmpty(database)) return;
  if (applicationId !== APPLICATION_ID) {
    throw new StoreUnusable(
      'STORE_UNREADABLE',
      `the database ${path} is not a pvescaler database: it belongs to another program`,
      {
        hint: 'Set state.path to a file that no other program uses.',
        facts: { path, applicationId: Number(applicationId) },
      },
    );
  }
  if (schema > migrations.length) throw schemaNewer(path, schema, migrations.length);
  if (schema < 1) throw databaseCorrupt(path, 'it has no schema version');
}

function needsCheck({ isNew, sizeBytes, hasLog }: DatabaseFile): boolean {
  return !isNew && (hasLog || sizeBytes <= MAX_ALWAYS_CHECKED_BYTES);
}

function assertIntact(database: DatabaseSync, path: string): void {
  const result = pragma(database, 'quick_check(1)');
  if (result !== 'ok') throw databaseCorrupt(path, String(result));
}

function setModes(database: DatabaseSync): void {
  // WAL: readers and the writer do not block each other, and a killed process leaves nothing to repair.
  database.exec('PRAGMA journal_mode = WAL');
  // FULL: a commit returns after the log is flushed. NORMAL would lose the last commits in a power failure.
  database.exec('PRAGMA synchronous = FULL');
}

/**
 * Runs all missing migrations in one transaction. The transaction begins even if none is missing, because only a write
 * attempt shows that the file cannot be written.
 */
function migrate(database: DatabaseSync, { path, migrations }: OpenDatabaseOptions): void {
  const target = migrations.length;
  inTransaction(database, () => {
    // Read again under the lock: another process may have migrated meanwhile.
    const schema = readSchemaVersion(database);
    if (schema > target) throw schemaNewer(path, schema, target);
    if (schema === target) return;
    if (schema > 0) copyBeforeMigration({ path, target, connect });
    for (const step of migrations.slice(schema)) database.exec(step);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec(`PRAGMA user_version = ${target}`);
  });
}
