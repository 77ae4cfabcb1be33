// SPDX-License-Identifier: Apache-2.0
// Failures of SQLite and of the file system in the product's words. Told apart by number, never by text.
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
/** The shared-memory file could not grow, which is how a full disk shows first. */
const IOERR_SHMSIZE = 4874;
const IOERR_CORRUPTFS = 8458;

interface Meaning {
  readonly code: StoreCode;
  readonly says: string;
  readonly hint?: string;
}

const MOVED: Meaning = {
  code: 'STORE_UNREADABLE',
  says: 'was moved, replaced or deleted while it was open',
  hint: 'Restart this process: what it writes now would be lost.',
};

const NOT_OURS: Meaning = {
  code: 'STORE_CORRUPT',
  says: 'is not a pvescaler database, or its head is damaged',
  hint: 'If state.path names another file by mistake, correct it. If this was the database, move it aside, with its -wal and -shm files, and start again: running machines are adopted from Proxmox.',
};

const UNREADABLE: Meaning = { code: 'STORE_UNREADABLE', says: 'cannot be opened' };
const READ_ONLY: Meaning = { code: 'STORE_READ_ONLY', says: 'cannot be written' };
const FULL: Meaning = { code: 'STORE_FULL', says: 'has no room: the disk is full' };
const CORRUPT: Meaning = { code: 'STORE_CORRUPT', says: 'is damaged' };

const BY_RESULT: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [PRIMARY.PERM, UNREADABLE],
  [PRIMARY.AUTH, UNREADABLE],
  [PRIMARY.READONLY, READ_ONLY],
  [READONLY_DBMOVED, MOVED],
  [PRIMARY.IOERR, { code: 'STORE_UNREADABLE', says: 'cannot be used: the disk reports an error' }],
  [IOERR_SHMSIZE, FULL],
  [IOERR_CORRUPTFS, CORRUPT],
  [PRIMARY.CORRUPT, CORRUPT],
  [PRIMARY.FULL, FULL],
  [PRIMARY.CANTOPEN, UNREADABLE],
  [PRIMARY.NOTADB, NOT_OURS],
]);

const BY_ERRNO: Readonly<Record<string, Meaning>> = {
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

/** PROTOCOL means that processes starting at once kept getting in each other's way: it passes. */
export function isBusy(error: unknown): boolean {
  const result = resultCode(error);
  if (result === undefined) return false;
  const primary = result & 0xff;
  return primary === PRIMARY.BUSY || primary === PRIMARY.LOCKED || primary === PRIMARY.PROTOCOL;
}

/** The schema that a statement needs is not there: not ours to find out which table was dropped. */
export function isMissingTable(error: unknown): boolean {
  return resultCode(error) === 1;
}

export function fromSqlite(error: unknown, path: string): unknown {
  const result = resultCode(error);
  if (error instanceof PvescalerError || result === undefined) return error;
  const meaning = BY_RESULT.get(result) ?? BY_RESULT.get(result & 0xff);
  if (meaning === undefined) {
    return new Bug('BUG', `SQLite refuses a statement of ours: ${errorText(error)}`, {
      cause: error,
    });
  }
  return storeError(meaning, { path, cause: error, facts: { sqlite: result } });
}

/** A failure of a file operation that was to create or write something. */
export function fromErrno(error: unknown, path: string): unknown {
  if (error instanceof PvescalerError || resultCode(error) !== undefined) return error;
  if (!(error instanceof Error) || !('code' in error)) return error;
  const meaning = BY_ERRNO[String(error.code)] ?? UNREADABLE;
  return storeError(meaning, { path, cause: error, facts: { errno: String(error.code) } });
}

export function movedAway(path: string): StoreUnusable {
  return storeError(MOVED, { path });
}

export function notOurs(path: string): StoreUnusable {
  return storeError(NOT_OURS, { path });
}

function storeError(
  { code, says, hint }: Meaning,
  {
    path,
    cause,
    facts,
  }: { path: string; cause?: unknown; facts?: Record<string, string | number> },
): StoreUnusable {
  const why = cause === undefined ? '' : ` (${errorText(cause)})`;
  return new StoreUnusable(code, `the database ${path} ${says}${why}`, {
    cause,
    facts: { path, ...facts },
    ...(hint !== undefined && { hint }),
  });
}

export function corrupt(path: string, problem: string): StoreUnusable {
  return new StoreUnusable('STORE_CORRUPT', `the database ${path} is damaged: ${problem}`, {
    facts: { path },
  });
}

export function schemaNewer(path: string, found: number, known: number): UnsupportedVersion {
  return new UnsupportedVersion(
    'STORE_SCHEMA_NEWER',
    `the database ${path} has schema ${found}; this version knows up to ${known}`,
    { facts: { path, found, known } },
  );
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
