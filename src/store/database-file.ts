// SPDX-License-Identifier: Apache-2.0
// Checks and creates the file before SQLite opens it. Never opens an existing database itself, because closing such a
// handle would drop the locks that SQLite holds on the same file in this process.
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
import { notADatabase, translateFileError } from './store-errors.ts';

/** One page of the smallest page size. */
const MIN_DATABASE_BYTES = 512;

export interface DatabaseFile {
  /** True for an empty file too: a process that is killed early leaves one behind. */
  readonly isNew: boolean;
  readonly sizeBytes: number;
  /** A process that was killed left a write-ahead log, or a running one uses it. */
  readonly hasLog: boolean;
}

/** Ensures that a regular file exists; a new one is readable only by its owner. */
export function prepareDatabaseFile(path: string): DatabaseFile {
  const found = statIfExists(path);
  if (found === undefined) {
    createPrivately(path);
    return { isNew: true, sizeBytes: 0, hasLog: false };
  }
  if (found.isDirectory()) throw unreadable(path, 'is a directory, not a file');
  // Opening a pipe would block.
  if (!found.isFile()) throw unreadable(path, 'is not a regular file');
  // SQLite treats a file of one byte as empty and would overwrite it.
  if (found.size > 0 && found.size < MIN_DATABASE_BYTES) throw notADatabase(path);
  assertAccessible(path);
  const log = statIfExists(`${path}-wal`);
  return { isNew: found.size === 0, sizeBytes: found.size, hasLog: (log?.size ?? 0) > 0 };
}

/** Flushes a file, or a directory, whose new entries are durable only then. */
export function fsyncPath(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function statIfExists(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (errno(error) === 'ENOENT') return undefined;
    if (errno(error) === 'ENOTDIR') throw unreadable(path, 'has a parent that is not a directory');
    throw unreadable(path, 'cannot be accessed', error);
  }
}

/**
 * Checked before SQLite opens the file: a failed attempt leaves -wal and -shm files of this user behind, which the owner
 * of the database could then not use.
 */
function assertAccessible(path: string): void {
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    throw unreadable(path, 'cannot be read by this user', error);
  }
  try {
    accessSync(path, constants.W_OK);
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
  } catch (error) {
    throw translateFileError(error, path);
  }
}

function createPrivately(path: string): void {
  try {
    createDirectory(dirname(path));
    closeSync(openSync(path, 'wx', 0o600));
    fsyncPath(dirname(path));
  } catch (error) {
    // A process that started at the same time created it first.
    if (errno(error) !== 'EEXIST') throw translateFileError(error, path);
  }
}

/** One level only: several missing directories indicate a typing error or a missing mount. */
function createDirectory(directory: string): void {
  if (statIfExists(directory) !== undefined) return;
  const parent = dirname(directory);
  if (statIfExists(parent) === undefined) {
    throw unreadable(directory, `cannot be created: the directory ${parent} does not exist`);
  }
  try {
    mkdirSync(directory, { mode: 0o700 });
    fsyncPath(parent);
  } catch (error) {
    if (errno(error) !== 'EEXIST') throw error;
  }
}

function errno(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

function unreadable(path: string, problem: string, cause?: unknown): StoreUnusable {
  return new StoreUnusable('STORE_UNREADABLE', `the database ${path} ${problem}`, {
    facts: { path },
    cause,
  });
}
