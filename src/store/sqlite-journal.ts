// SPDX-License-Identifier: Apache-2.0
import type { JournalEntry } from '../model/journal-entry.ts';
import type { Journal, JournalQuery, JournalRecord } from '../ports/journal.ts';
import { decodeRecord, encodeRecord } from '../ports/record-codec.ts';
import { JOURNAL_VALIDATOR } from '../ports/record-validators.ts';
import type { StoreObserver } from '../ports/store-write.ts';
import type { DatabaseConnection, Row, Statement } from './database-connection.ts';
import { databaseCorrupt } from './store-errors.ts';

const SUBJECTS = ['pool', 'machine', 'node'] as const;
const DEFAULT_LIMIT = 1000;

export class SqliteJournal implements Journal {
  readonly #connection: DatabaseConnection;
  readonly #onWrite: StoreObserver;
  readonly #insert: Statement;
  readonly #prune: Statement;
  /** One statement per set of filters: a condition that is always present would prevent the use of an index. */
  readonly #selects = new Map<string, Statement>();

  constructor(connection: DatabaseConnection, onWrite: StoreObserver) {
    this.#connection = connection;
    this.#onWrite = onWrite;
    this.#insert = connection.prepare(
      `INSERT INTO journal (at, pool, machine, node, value) VALUES (?, ?, ?, ?, ?)
       RETURNING sequence`,
    );
    this.#prune = connection.prepare(
      `DELETE FROM journal WHERE at < ?
       OR sequence NOT IN (SELECT sequence FROM journal ORDER BY sequence DESC LIMIT ?)`,
    );
  }

  async append(entry: JournalEntry): Promise<JournalRecord> {
    const record = await this.#connection.write(undefined, () => {
      const value = encodeRecord(JOURNAL_VALIDATOR, entry, 'a journal entry');
      const { pool = null, machine = null, node = null } = entry.subject;
      const sequence = this.#insert.first(entry.at, pool, machine, node, value)?.['sequence'];
      return this.#record({ sequence, value });
    });
    this.#onWrite({ target: 'journal', action: 'append', key: String(record.sequence) });
    return record;
  }

  read(query: JournalQuery = {}): Promise<readonly JournalRecord[]> {
    const { after = 0, limit = DEFAULT_LIMIT, signal } = query;
    const filters = SUBJECTS.filter((subject) => query[subject] !== undefined);
    return this.#connection.read(signal, () =>
      this.#select(filters)
        .all(after, ...filters.map((subject) => query[subject] ?? null), rowCount(limit))
        .map((row) => this.#record(row))
        .toReversed(),
    );
  }

  async prune(rule: { readonly beforeMs: number; readonly keep: number }): Promise<number> {
    const { beforeMs, keep } = rule;
    const pruned = await this.#connection.write(undefined, () =>
      this.#prune.run(beforeMs, rowCount(keep)),
    );
    if (pruned > 0) this.#onWrite({ target: 'journal', action: 'prune', key: String(pruned) });
    return pruned;
  }

  #select(subjects: readonly string[]): Statement {
    const name = subjects.join();
    const known = this.#selects.get(name);
    if (known !== undefined) return known;
    const conditions = ['sequence > ?', ...subjects.map((subject) => `${subject} = ?`)];
    const statement = this.#connection.prepare(
      `SELECT sequence, value FROM journal WHERE ${conditions.join(' AND ')}
       ORDER BY sequence DESC LIMIT ?`,
    );
    this.#selects.set(name, statement);
    return statement;
  }

  #record({ sequence, value }: Row): JournalRecord {
    if (typeof sequence !== 'number' || typeof value !== 'string') {
      throw this.#corruptRow(sequence, 'a column has the wrong type');
    }
    const parsed = decodeRecord(JOURNAL_VALIDATOR, value);
    if (!parsed.ok) throw this.#corruptRow(sequence, parsed.problem);
    return Object.freeze({ ...parsed.value, sequence });
  }

  #corruptRow(sequence: unknown, problem: string): Error {
    return databaseCorrupt(
      this.#connection.path,
      `table journal, key ${String(sequence)}: ${problem}`,
    );
  }
}

/** Converts a caller's limit, possibly infinite, to an integer for SQLite. */
function rowCount(count: number): number {
  return count > 0 ? Math.floor(Math.min(count, Number.MAX_SAFE_INTEGER)) : 0;
}
