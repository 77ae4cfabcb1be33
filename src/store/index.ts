// SPDX-License-Identifier: Apache-2.0
// The Store in one SQLite file, shared by all processes of one machine. Owns the file, its schema, its locks and the
// translation of their errors. Knows the structure of records, but not their meaning. Start reading at
// open-sqlite-store.ts; ports/store.ts states the contract.

export { openDriverLock } from './driver-lock.ts';
export { fileSystemWarnings } from './file-system-warnings.ts';
export { openSqliteStore } from './open-sqlite-store.ts';
export { readMachineRecords } from './read-machine-records.ts';
