// SPDX-License-Identifier: Apache-2.0
// The Store in one SQLite file: what the fleet must not forget, shared by all processes of one machine. Owns
// the file, its schema and its locks, and how their failures are told. Knows nothing of what the records mean
// beyond their shape, nor of who writes them. Start reading at open-sqlite-store.ts; what must hold stands in
// ports/store.ts.

export { fileSystemWarnings } from './file-system-warnings.ts';
export { openSqliteStore } from './open-sqlite-store.ts';
