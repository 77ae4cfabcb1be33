// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Conflict } from '../ports/errors.ts';
import { isBusy, translateFileError, translateSqliteError } from './store-errors.ts';

const PATH = '/var/lib/pvescaler/state.db';

function sqliteError(errcode: number): Error {
  return Object.assign(new Error('message of SQLite'), { code: 'ERR_SQLITE_ERROR', errcode });
}

describe('translateSqliteError', () => {
  it.each([
    ['PERM', 3, 'STORE_UNREADABLE'],
    ['READONLY', 8, 'STORE_READ_ONLY'],
    ['READONLY_RECOVERY', 264, 'STORE_READ_ONLY'],
    ['READONLY_DBMOVED', 1032, 'STORE_UNREADABLE'],
    ['READONLY_DIRECTORY', 1544, 'STORE_READ_ONLY'],
    ['IOERR', 10, 'STORE_UNREADABLE'],
    ['IOERR_FSYNC', 1034, 'STORE_UNREADABLE'],
    ['IOERR_SHMSIZE', 4874, 'STORE_FULL'],
    ['IOERR_CORRUPTFS', 8458, 'STORE_CORRUPT'],
    ['CORRUPT', 11, 'STORE_CORRUPT'],
    ['CORRUPT_INDEX', 779, 'STORE_CORRUPT'],
    ['FULL', 13, 'STORE_FULL'],
    ['CANTOPEN', 14, 'STORE_UNREADABLE'],
    ['AUTH', 23, 'STORE_UNREADABLE'],
    ['NOTADB', 26, 'STORE_CORRUPT'],
    ['ERROR', 1, 'BUG'],
    ['CONSTRAINT_PRIMARYKEY', 1555, 'BUG'],
  ])('translates %s (%i) to %s', (_name, errcode, code) => {
    const cause = sqliteError(errcode);
    expect(translateSqliteError(cause, PATH)).toMatchObject({ code, cause });
  });

  it('includes the path, the message of SQLite and its result code', () => {
    expect(translateSqliteError(sqliteError(13), PATH)).toMatchObject({
      message: `the database ${PATH} cannot grow: the disk is full (message of SQLite)`,
      facts: { path: PATH, sqlite: 13 },
    });
  });

  it.each([5, 261, 517, 6, 262, 15])('treats result code %i as busy', (errcode) => {
    expect(isBusy(sqliteError(errcode))).toBe(true);
  });

  it.each([8, 10, 11, 1])('does not treat result code %i as busy', (errcode) => {
    expect(isBusy(sqliteError(errcode))).toBe(false);
  });

  it('returns our own and unknown errors unchanged', () => {
    const ours = new Conflict('RECORD_EXISTS', 'the record exists');
    const other = new TypeError('not a database error');
    for (const error of [ours, other]) {
      expect(translateSqliteError(error, PATH)).toBe(error);
      expect(translateFileError(error, PATH)).toBe(error);
      expect(isBusy(error)).toBe(false);
    }
  });
});

describe('translateFileError', () => {
  it.each([
    ['EACCES', 'STORE_READ_ONLY'],
    ['EPERM', 'STORE_READ_ONLY'],
    ['EROFS', 'STORE_READ_ONLY'],
    ['ENOSPC', 'STORE_FULL'],
    ['EDQUOT', 'STORE_FULL'],
    ['ENAMETOOLONG', 'STORE_UNREADABLE'],
  ])('translates %s to %s', (errno, code) => {
    const cause = Object.assign(new Error('message of the kernel'), { code: errno });
    expect(translateFileError(cause, PATH)).toMatchObject({
      code,
      cause,
      facts: { path: PATH, errno },
    });
  });
});
