// SPDX-License-Identifier: Apache-2.0
// The file before SQLite sees it. Only looks and creates: never opens an existing database by itself, because
// closing such a handle would drop the locks that SQLite holds on the same file in this process.
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  type Stats,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { StoreUnusable } from '../ports/errors.ts';
import { fromErrno, notOurs } from './store-errors.ts';

/** One page of the smallest size. */
const SMALLEST_DATABASE_BYTES = 512;

export interface DatabaseFile {
  /** A file of no bytes is as good as none: who is killed early leaves one behind. */
  readonly isNew: boolean;
  readonly sizeBytes: number;
  /** A log with content is left by a process that was killed, or belongs to one that runs. */
  readonly hasLog: boolean;
}

/** Makes sure that a regular file is there, readable by its owner alone if it is made here. */
export function prepareDatabaseFile(path: string): DatabaseFile {
  const found = existing(path);
  if (found === undefined) {
    createPrivately(path);
    return { isNew: true, sizeBytes: 0, hasLog: false };
  }
  if (found.isDirectory()) throw unreadable(path, 'is a folder, not a file');
  // Opening a pipe would wait for ever.
  if (!found.isFile()) throw unreadable(path, 'is not a regular file');
  // SQLite takes a file of a single byte for an empty one, and would write over it.
  if (found.size > 0 && found.size < SMALLEST_DATABASE_BYTES) throw notOurs(path);
  assertAllowed(path);
  const log = existing(`${path}-wal`);
  return { isNew: found.size === 0, sizeBytes: found.size, hasLog: (log?.size ?? 0) > 0 };
}

/** A new name is durable only after the folder it stands in was flushed. */
export function flush(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function existing(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (errno(error) === 'ENOENT') return undefined;
    if (errno(error) === 'ENOTDIR')
      throw unreadable(path, 'lies below something that is no folder');
    throw unreadable(path, 'cannot be looked at', error);
  }
}

/**
 * Asked before SQLite tries: on its way to finding out it leaves helper files behind that belong to whoever
 * ran this, and the process that may write the database could then not use them.
 */
function assertAllowed(path: string): void {
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    throw unreadable(path, 'may not be read', error);
  }
  try {
    accessSync(path, constants.W_OK);
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
  } catch (error) {
    throw fromErrno(error, path);
  }
}

function createPrivately(path: string): void {
  try {
    makeFolder(dirname(path));
    closeSync(openSync(path, 'wx', 0o600));
    flush(dirname(path));
  } catch (error) {
    // Another process that starts at the same time was faster; its file is as good.
    if (errno(error) !== 'EEXIST') throw fromErrno(error, path);
  }
}

/** One level only: a path with several missing folders is more likely a typing mistake or a missing mount. */
function makeFolder(folder: string): void {
  if (existing(folder) !== undefined) return;
  const parent = dirname(folder);
  if (existing(parent) === undefined) {
    throw unreadable(folder, `cannot be made: there is no folder ${parent}`);
  }
  try {
    mkdirSync(folder, { mode: 0o700 });
    flush(parent);
  } catch (error) {
    if (errno(error) !== 'EEXIST') throw error;
  }
}

function errno(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

function unreadable(path: string, says: string, cause?: unknown): StoreUnusable {
  return new StoreUnusable('STORE_UNREADABLE', `${path} ${says}`, { facts: { path }, cause });
}
