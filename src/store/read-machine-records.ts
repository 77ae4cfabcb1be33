// SPDX-License-Identifier: Apache-2.0
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Machine } from '../model/machine.ts';
import { decodeRecord, RECORD_VALIDATORS } from '../ports/record-validators.ts';

/** A shell waits for the answer. */
const LOCK_WAIT_MS = 50;

/**
 * The machines of a database as it is: it is neither created, checked, migrated nor changed. Throws what SQLite throws; for
 * completion, which shows nothing then.
 */
export function readMachineRecords(path: string): readonly Machine[] {
  if (!existsSync(path)) return [];
  const database = new DatabaseSync(resolve(path), { readOnly: true, timeout: LOCK_WAIT_MS });
  try {
    const rows = database.prepare('SELECT value FROM machines').all();
    return rows.flatMap(({ value }) => {
      const machine = decodeRecord(RECORD_VALIDATORS.machines, String(value));
      return machine.ok ? [machine.value] : [];
    });
  } finally {
    database.close();
  }
}
