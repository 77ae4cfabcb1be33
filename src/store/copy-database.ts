// SPDX-License-Identifier: Apache-2.0
import { closeSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { flush } from './database-file.ts';
import { fromErrno } from './store-errors.ts';

interface Copy {
  readonly path: string;
  /** The schema that is about to replace the copied one. */
  readonly target: number;
  readonly connect: (path: string) => DatabaseSync;
}

/**
 * Keeps the database as it is now beside itself, whole and durable before the caller changes anything. The
 * caller holds the write lock, hence nobody else writes the copy at the same time. A copy of the same name is
 * replaced: it comes from an earlier attempt at the same migration.
 */
export function copyBeforeMigration({ path, target, connect }: Copy): void {
  const copy = `${path}.before-v${target}`;
  const unfinished = `${copy}.unfinished`;
  try {
    rmSync(unfinished, { force: true });
    // SQLite would create it readable for everybody; it also takes an empty file.
    closeSync(openSync(unfinished, 'wx', 0o600));
    snapshot(connect(path), unfinished);
    flush(unfinished);
    renameSync(unfinished, copy);
    flush(dirname(path));
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw fromErrno(error, copy);
  }
}

/** By a connection of its own: the caller's is inside a transaction, where SQLite makes no snapshots. */
function snapshot(source: DatabaseSync, to: string): void {
  try {
    source.prepare('VACUUM INTO ?').run(to);
  } finally {
    source.close();
  }
}
