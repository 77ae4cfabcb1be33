// SPDX-License-Identifier: Apache-2.0
// From a path to a database of the schema we know, or to a clear refusal. Until the file is known to be ours
// (or empty) it is only read; a refusal leaves it as it was.
import { DatabaseSync } from 'node:sqlite';
import { StoreUnusable } from '../ports/errors.ts';
import { type BusyRetry, whileBusy } from './busy-retry.ts';
import { inTransaction } from './connection.ts';
import { copyBeforeMigration } from './copy-database.ts';
import { type DatabaseFile, prepareDatabaseFile } from './database-file.ts';
import { APPLICATION_ID } from './schema.ts';
import { corrupt, schemaNewer } from './store-errors.ts';

/** SQLite's own waiting blocks the process: long enough for one commit of another, no longer. */
const LOCK_WAIT_MS = 20;

/**
 * A whole check reads every page, about a millisecond per megabyte. A usual database has a few, so it is
 * checked at every start; a large one only when its last user may not have closed it.
 */
const ALWAYS_CHECKED_BYTES = 64 * 1024 * 1024;

export interface OpenDatabase extends BusyRetry {
  readonly migrations: readonly string[];
  readonly signal?: AbortSignal | undefined;
  readonly lockWaitMs?: number | undefined;
}

export async function openDatabase(options: OpenDatabase): Promise<DatabaseSync> {
  const { path, signal } = options;
  const file = prepareDatabaseFile(path);
  const database = await whileBusy(options, signal, () => connect(path, options.lockWaitMs));
  try {
    await whileBusy(options, signal, () => assertOurs(database, options));
    if (needsCheck(file)) await whileBusy(options, signal, () => assertSound(database, path));
    await whileBusy(options, signal, () => setModes(database));
    await whileBusy(options, signal, () => migrate(database, options));
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

function schemaOf(database: DatabaseSync): number {
  return Number(pragma(database, 'user_version'));
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function assertOurs(database: DatabaseSync, { path, migrations }: OpenDatabase): void {
  const owner = pragma(database, 'application_id');
  const schema = schemaOf(database);
  if (owner === 0 && schema === 0 && isEmpty(database)) return;
  if (owner !== APPLICATION_ID) {
    throw new StoreUnusable(
      'STORE_UNREADABLE',
      `${path} is not a pvescaler database: it belongs to another program`,
      {
        hint: 'Set state.path to a file of its own.',
        facts: { path, applicationId: Number(owner) },
      },
    );
  }
  if (schema > migrations.length) throw schemaNewer(path, schema, migrations.length);
  if (schema < 1) throw corrupt(path, 'it names no schema version');
}

function needsCheck({ isNew, sizeBytes, hasLog }: DatabaseFile): boolean {
  return !isNew && (hasLog || sizeBytes <= ALWAYS_CHECKED_BYTES);
}

function assertSound(database: DatabaseSync, path: string): void {
  const verdict = pragma(database, 'quick_check(1)');
  if (verdict !== 'ok') throw corrupt(path, String(verdict));
}

function setModes(database: DatabaseSync): void {
  // WAL: readers and the writer do not wait for each other, and a killed process leaves nothing to repair.
  database.exec('PRAGMA journal_mode = WAL');
  // FULL: a commit returns after the log was flushed. NORMAL would lose the last ones in a power cut.
  database.exec('PRAGMA synchronous = FULL');
}

/**
 * All missing steps in one transaction: the schema is the old one or the new one, never between. It begins
 * even when nothing is missing, because only an attempt to write shows that the file cannot be written.
 */
function migrate(database: DatabaseSync, { path, migrations }: OpenDatabase): void {
  const target = migrations.length;
  inTransaction(database, () => {
    // Read again under the lock: another process may have migrated while we waited.
    const schema = schemaOf(database);
    if (schema > target) throw schemaNewer(path, schema, target);
    if (schema === target) return;
    if (schema > 0) copyBeforeMigration({ path, target, connect });
    for (const step of migrations.slice(schema)) database.exec(step);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec(`PRAGMA user_version = ${target}`);
  });
}
