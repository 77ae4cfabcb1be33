// SPDX-License-Identifier: Apache-2.0
// Translates errors of SQLite and of the file system, by number and never by text.
import type { CodeOf } from '../ports/error-codes.ts';
import { Bug, PvescalerError, StoreUnusable, UnsupportedVersion } from '../ports/errors.ts';

type StoreCode = CodeOf<'StoreUnusable'>;

const PRIMARY = {
  PERM: 3,
  BUSY: 5,
  LOCKED: 6,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  PROTOCOL: 15,
  AUTH: 23,
  NOTADB: 26,
} as const;

const READONLY_DBMOVED = 1032;
/** The shared-memory file could not grow: the first symptom of a full disk. */
const IOERR_SHMSIZE = 4874;
const IOERR_CORRUPTFS = 8458;

interface ErrorMeaning {
  readonly code: StoreCode;
  readonly problem: string;
  readonly hint?: string;
}

const MOVED: ErrorMeaning = {
  code: 'STORE_UNREADABLE',
  problem: 'was moved, replaced or deleted while it was open',
  hint: 'Restart this process: its writes would be lost.',
};

const NOT_A_DATABASE: ErrorMeaning = {
  code: 'STORE_CORRUPT',
  problem: 'is not a pvescaler database, or its header is damaged',
  hint: 'Correct state.path if it names another file. If this was the database, move it aside with its -wal and -shm files and start again: running machines are adopted from Proxmox.',
};

const UNREADABLE: ErrorMeaning = { code: 'STORE_UNREADABLE', problem: 'cannot be opened' };
const READ_ONLY: ErrorMeaning = { code: 'STORE_READ_ONLY', problem: 'cannot be written' };
const FULL: ErrorMeaning = { code: 'STORE_FULL', problem: 'cannot grow: the disk is full' };
const CORRUPT: ErrorMeaning = { code: 'STORE_CORRUPT', problem: 'is damaged' };

const BY_RESULT: ReadonlyMap<number, ErrorMeaning> = new Map<number, ErrorMeaning>([
  [PRIMARY.PERM, UNREADABLE],
  [PRIMARY.AUTH, UNREADABLE],
  [PRIMARY.READONLY, READ_ONLY],
  [READONLY_DBMOVED, MOVED],
  [
    PRIMARY.IOERR,
    { code: 'STORE_UNREADABLE', problem: 'cannot be used: the disk reports an error' },
  ],
  [IOERR_SHMSIZE, FULL],
  [IOERR_CORRUPTFS, CORRUPT],
  [PRIMARY.CORRUPT, CORRUPT],
  [PRIMARY.FULL, FULL],
  [PRIMARY.CANTOPEN, UNREADABLE],
  [PRIMARY.NOTADB, NOT_A_DATABASE],
]);

const BY_ERRNO: Readonly<Record<string, ErrorMeaning>> = {
  EACCES: READ_ONLY,
  EPERM: READ_ONLY,
  EROFS: READ_ONLY,
  ENOSPC: FULL,
  EDQUOT: FULL,
};

/** SQLite's extended result code; undefined for everything that does not come from SQLite. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode : undefined;
}

/** PROTOCOL is a transient locking conflict between processes that start at the same time. */
export function isBusy(error: unknown): boolean {
  const result = resultCode(error);
  if (result === undefined) return false;
  const primary = result & 0xff;
  return primary === PRIMARY.BUSY || primary === PRIMARY.LOCKED || primary === PRIMARY.PROTOCOL;
}

/** SQLITE_ERROR while preparing a statement: a table of the schema is missing. */
export function isMissingTable(error: unknown): boolean {
  return resultCode(error) === 1;
}

export function translateSqliteError(error: unknown, path: string): unknown {
  const result = resultCode(error);
  if (error instanceof PvescalerError || result === undefined) return error;
  const meaning = BY_RESULT.get(result) ?? BY_RESULT.get(result & 0xff);
  if (meaning === undefined) {
    return new Bug('BUG', `SQLite refused a statement: ${errorText(error)}`, {
      cause: error,
    });
  }
  return storeError(meaning, { path, cause: error, facts: { sqlite: result } });
}

/** For errors of file operations that create or write something. */
export function translateFileError(error: unknown, path: string): unknown {
  if (error instanceof PvescalerError || resultCode(error) !== undefined) return error;
  if (!(error instanceof Error) || !('code' in error)) return error;
  const meaning = BY_ERRNO[String(error.code)] ?? UNREADABLE;
  return storeError(meaning, { path, cause: error, facts: { errno: String(error.code) } });
}

export function databaseMoved(path: string): StoreUnusable {
  return storeError(MOVED, { path });
}

export function notADatabase(path: string): StoreUnusable {
  return storeError(NOT_A_DATABASE, { path });
}

function storeError(
  { code, problem, hint }: ErrorMeaning,
  {
    path,
    cause,
    facts,
  }: { path: string; cause?: unknown; facts?: Record<string, string | number> },
): StoreUnusable {
  const why = cause === undefined ? '' : ` (${errorText(cause)})`;
  return new StoreUnusable(code, `the database ${path} ${problem}${why}`, {
    cause,
    facts: { path, ...facts },
    ...(hint !== undefined && { hint }),
  });
}

export function databaseCorrupt(path: string, problem: string): StoreUnusable {
  return new StoreUnusable('STORE_CORRUPT', `the database ${path} is damaged: ${problem}`, {
    facts: { path },
  });
}

export function schemaNewer(path: string, found: number, known: number): UnsupportedVersion {
  return new UnsupportedVersion(
    'STORE_SCHEMA_NEWER',
    `the database ${path} has schema ${found}; this version supports schemas up to ${known}`,
    { facts: { path, found, known } },
  );
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
