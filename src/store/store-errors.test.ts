// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Conflict } from '../ports/errors.ts';
import { fromErrno, fromSqlite, isBusy } from './store-errors.ts';

const PATH = '/var/lib/pvescaler/state.db';

function sqliteError(errcode: number): Error {
  return Object.assign(new Error('what SQLite says'), { code: 'ERR_SQLITE_ERROR', errcode });
}

describe('errors of SQLite', () => {
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
  ])('%s (%i) is %s', (_name, errcode, code) => {
    const cause = sqliteError(errcode);
    expect(fromSqlite(cause, PATH)).toMatchObject({ code, cause });
  });

  it('name the path, what SQLite said, and its number', () => {
    expect(fromSqlite(sqliteError(13), PATH)).toMatchObject({
      message: `the database ${PATH} has no room: the disk is full (what SQLite says)`,
      facts: { path: PATH, sqlite: 13 },
    });
  });

  it.each([5, 261, 517, 6, 262, 15])('%i passes by itself', (errcode) => {
    expect(isBusy(sqliteError(errcode))).toBe(true);
  });

  it.each([8, 10, 11, 1])('%i does not', (errcode) => {
    expect(isBusy(sqliteError(errcode))).toBe(false);
  });

  it('ours and unknown ones stay what they are', () => {
    const ours = new Conflict('RECORD_EXISTS', 'it is there');
    const other = new TypeError('a mistake');
    for (const error of [ours, other]) {
      expect(fromSqlite(error, PATH)).toBe(error);
      expect(fromErrno(error, PATH)).toBe(error);
      expect(isBusy(error)).toBe(false);
    }
  });
});

describe('errors of the file system', () => {
  it.each([
    ['EACCES', 'STORE_READ_ONLY'],
    ['EPERM', 'STORE_READ_ONLY'],
    ['EROFS', 'STORE_READ_ONLY'],
    ['ENOSPC', 'STORE_FULL'],
    ['EDQUOT', 'STORE_FULL'],
    ['ENAMETOOLONG', 'STORE_UNREADABLE'],
  ])('%s is %s', (errno, code) => {
    const cause = Object.assign(new Error('what the kernel says'), { code: errno });
    expect(fromErrno(cause, PATH)).toMatchObject({ code, cause, facts: { path: PATH, errno } });
  });
});
