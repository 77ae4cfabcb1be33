// SPDX-License-Identifier: Apache-2.0
import { closeSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { fsyncPath } from './database-file.ts';
import { translateFileError } from './store-errors.ts';

interface CopyOptions {
  readonly path: string;
  /** The schema version that the migration leads to. */
  readonly target: number;
  readonly connect: (path: string) => DatabaseSync;
}

/**
 * Writes a durable copy of the database next to it before the migration. The caller holds the write lock, so no other
 * process writes the copy at the same time. Replaces a copy of the same name from an earlier attempt at this migration.
 */
export function copyBeforeMigration({ path, target, connect }: CopyOptions): void {
  const copy = `${path}.before-v${target}`;
  const unfinished = `${copy}.unfinished`;
  try {
    rmSync(unfinished, { force: true });
    // Created here with private permissions; SQLite accepts an empty file.
    closeSync(openSync(unfinished, 'wx', 0o600));
    snapshot(connect(path), unfinished);
    fsyncPath(unfinished);
    renameSync(unfinished, copy);
    fsyncPath(dirname(path));
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw translateFileError(error, copy);
  }
}

/** Uses a separate connection, because SQLite cannot run VACUUM inside the caller's transaction. */
function snapshot(source: DatabaseSync, to: string): void {
  try {
    source.prepare('VACUUM INTO ?').run(to);
  } finally {
    source.close();
  }
}
