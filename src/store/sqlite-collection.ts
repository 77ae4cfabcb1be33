// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';
import { Conflict, NotFound } from '../ports/errors.ts';
import {
  assertKey,
  type CollectionName,
  decodeRecord,
  encodeRecord,
  RECORD_VALIDATORS,
  type RecordKinds,
} from '../ports/record-validators.ts';

import type { Collection, ReadOptions, Versioned, WriteOptions } from '../ports/store.ts';
import type { StoreObserver, StoreWrite } from '../ports/store-write.ts';
import type { Validator } from '../ports/validator.ts';
import type { DatabaseConnection, Row, Statement } from './database-connection.ts';
import { REMOVALS_KEPT } from './schema.ts';
import { databaseCorrupt } from './store-errors.ts';

interface CollectionOptions<N extends CollectionName> {
  readonly table: N;
  readonly assertHeld: (fence: Lease) => void;
  readonly onWrite: StoreObserver;
}

/**
 * Records of one kind in one table. A record's revision is the store's counter at its last write and is never reused, so
 * a record that was removed and created again has a different revision.
 */
export class SqliteCollection<N extends CollectionName> implements Collection<RecordKinds[N]> {
  readonly #connection: DatabaseConnection;
  readonly #options: CollectionOptions<N>;
  readonly #validator: Validator<RecordKinds[N]>;
  readonly #select: Statement;
  readonly #selectAll: Statement;
  readonly #incrementRevision: Statement;
  readonly #upsert: Statement;
  readonly #delete: Statement;
  readonly #selectSince: Statement;
  readonly #insertRemoval: Statement;
  readonly #pruneRemovals: Statement;

  constructor(connection: DatabaseConnection, options: CollectionOptions<N>) {
    const { table } = options;
    this.#connection = connection;
    this.#options = options;
    this.#validator = RECORD_VALIDATORS[table];
    this.#select = connection.prepare(`SELECT key, revision, value FROM ${table} WHERE key = ?`);
    this.#selectAll = connection.prepare(`SELECT key, revision, value FROM ${table}`);
    this.#incrementRevision = connection.prepare(
      'UPDATE installation SET revision = revision + 1 RETURNING revision',
    );
    this.#upsert = connection.prepare(
      `INSERT INTO ${table} (key, revision, value) VALUES (?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, value = excluded.value`,
    );
    this.#delete = connection.prepare(`DELETE FROM ${table} WHERE key = ?`);
    this.#selectSince = connection.prepare(
      `SELECT key, revision, value FROM ${table} WHERE revision > ?`,
    );
    this.#insertRemoval = connection.prepare(
      `INSERT INTO removals (revision, collection, key) VALUES (?, '${table}', ?)`,
    );
    this.#pruneRemovals = connection.prepare('DELETE FROM removals WHERE revision <= ?');
  }

  get(key: string, options: ReadOptions = {}): Promise<Versioned<RecordKinds[N]> | undefined> {
    return this.#connection.read(options.signal, () => {
      const row = this.#select.first(key);
      return row && this.#versioned(row);
    });
  }

  list(options: ReadOptions = {}): Promise<readonly Versioned<RecordKinds[N]>[]> {
    return this.#connection.read(options.signal, () =>
      this.#selectAll
        .all()
        .map((row) => this.#versioned(row))
        // Not in SQL: SQLite orders by UTF-8 bytes, which differs from code unit order beyond U+FFFF.
        .sort((a, b) => (a.key < b.key ? -1 : 1)),
    );
  }

  create(
    key: string,
    value: RecordKinds[N],
    options: WriteOptions = {},
  ): Promise<Versioned<RecordKinds[N]>> {
    return this.#write({ action: 'create', key }, options, () => {
      assertKey(key);
      if (this.#select.first(key) !== undefined) {
        throw new Conflict('RECORD_EXISTS', `${this.#options.table} already contains ${key}`);
      }
      return this.#put(key, value);
    });
  }

  replace(
    seen: Versioned<RecordKinds[N]>,
    value: RecordKinds[N],
    options: WriteOptions = {},
  ): Promise<Versioned<RecordKinds[N]>> {
    return this.#write({ action: 'replace', key: seen.key }, options, () => {
      this.#assertNewest(seen);
      return this.#put(seen.key, value);
    });
  }

  remove(seen: Versioned<RecordKinds[N]>, options: WriteOptions = {}): Promise<void> {
    return this.#write({ action: 'remove', key: seen.key }, options, () => {
      this.#assertNewest(seen);
      const revision = this.#nextRevision();
      this.#delete.run(seen.key);
      this.#insertRemoval.run(revision, seen.key);
      this.#pruneRemovals.run(revision - REMOVALS_KEPT);
    });
  }

  /** Call it inside a transaction. */
  since(revision: number): readonly Versioned<RecordKinds[N]>[] {
    return this.#selectSince.all(revision).map((row) => this.#versioned(row));
  }

  async #write<T>(
    write: Pick<StoreWrite, 'action' | 'key'>,
    { fence, signal }: WriteOptions,
    work: () => T,
  ): Promise<T> {
    const { table, assertHeld, onWrite } = this.#options;
    const result = await this.#connection.write(signal, () => {
      if (fence !== undefined) assertHeld(fence);
      return work();
    });
    onWrite({ target: table, ...write });
    return result;
  }

  #put(key: string, value: RecordKinds[N]): Versioned<RecordKinds[N]> {
    const json = encodeRecord(this.#validator, value, `${this.#options.table} ${key}`);
    const revision = this.#nextRevision();
    this.#upsert.run(key, revision, json);
    return this.#versioned({ key, revision, value: json });
  }

  #nextRevision(): number {
    const revision = this.#incrementRevision.first()?.['revision'];
    if (typeof revision === 'number') return revision;
    throw databaseCorrupt(this.#connection.path, 'table installation has no row');
  }

  #assertNewest({ key, revision }: Versioned<unknown>): void {
    const { table } = this.#options;
    const newest = this.#select.first(key);
    if (newest === undefined) {
      throw new NotFound('RECORD_NOT_FOUND', `${table} no longer contains ${key}`);
    }
    if (newest['revision'] !== revision) {
      throw new Conflict('RECORD_CHANGED', `${table} ${key} was changed by another write`);
    }
  }

  #versioned({ key, revision, value }: Row): Versioned<RecordKinds[N]> {
    const isValid =
      typeof key === 'string' && typeof revision === 'number' && typeof value === 'string';
    if (!isValid) throw this.#corruptRow(key, 'a column has the wrong type');
    const parsed = decodeRecord(this.#validator, value);
    if (!parsed.ok) throw this.#corruptRow(key, parsed.problem);
    return Object.freeze({ key, value: parsed.value, revision });
  }

  #corruptRow(key: unknown, problem: string): Error {
    const { table } = this.#options;
    return databaseCorrupt(this.#connection.path, `table ${table}, key ${String(key)}: ${problem}`);
  }
}
