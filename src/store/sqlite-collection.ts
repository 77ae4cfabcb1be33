// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';
import { Conflict, NotFound } from '../ports/errors.ts';
import { assertKey, decodeRecord, encodeRecord } from '../ports/record-codec.ts';
import { type CollectionName, RECORD_SHAPES, type RecordKinds } from '../ports/record-shapes.ts';
import type { Shape } from '../ports/shape.ts';
import type { Collection, ReadOptions, Versioned, WriteOptions } from '../ports/store.ts';
import type { StoreObserver, StoreWrite } from '../ports/store-write.ts';
import type { Connection, Row, Statement } from './connection.ts';
import { REMOVALS_KEPT } from './schema.ts';
import { corrupt } from './store-errors.ts';

interface CollectionParts<N extends CollectionName> {
  readonly table: N;
  readonly assertHeld: (fence: Lease) => void;
  readonly onWrite: StoreObserver;
}

/**
 * Records of one kind in one table. A record's revision is the store's counter at its last write: it is
 * never used again, so a record removed and made anew is not taken for the one seen before.
 */
export class SqliteCollection<N extends CollectionName> implements Collection<RecordKinds[N]> {
  readonly #connection: Connection;
  readonly #parts: CollectionParts<N>;
  readonly #shape: Shape<RecordKinds[N]>;
  readonly #select: Statement;
  readonly #selectAll: Statement;
  readonly #count: Statement;
  readonly #upsert: Statement;
  readonly #delete: Statement;
  readonly #selectSince: Statement;
  readonly #noteRemoval: Statement;
  readonly #forgetRemovals: Statement;

  constructor(connection: Connection, parts: CollectionParts<N>) {
    const { table } = parts;
    this.#connection = connection;
    this.#parts = parts;
    this.#shape = RECORD_SHAPES[table];
    this.#select = connection.prepare(`SELECT key, revision, value FROM ${table} WHERE key = ?`);
    this.#selectAll = connection.prepare(`SELECT key, revision, value FROM ${table}`);
    this.#count = connection.prepare(
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
    this.#noteRemoval = connection.prepare(
      `INSERT INTO removals (revision, collection, key) VALUES (?, '${table}', ?)`,
    );
    this.#forgetRemovals = connection.prepare('DELETE FROM removals WHERE revision <= ?');
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
        // Here and not in SQL: SQLite orders by UTF-8 bytes, which is another order beyond U+FFFF.
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
        throw new Conflict('RECORD_EXISTS', `${this.#parts.table} has ${key} already`);
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
      this.#noteRemoval.run(revision, seen.key);
      this.#forgetRemovals.run(revision - REMOVALS_KEPT);
    });
  }

  /** Inside a transaction of the caller's. */
  since(revision: number): readonly Versioned<RecordKinds[N]>[] {
    return this.#selectSince.all(revision).map((row) => this.#versioned(row));
  }

  async #write<T>(
    write: Pick<StoreWrite, 'action' | 'key'>,
    { fence, signal }: WriteOptions,
    work: () => T,
  ): Promise<T> {
    const { table, assertHeld, onWrite } = this.#parts;
    const result = await this.#connection.write(signal, () => {
      if (fence !== undefined) assertHeld(fence);
      return work();
    });
    onWrite({ target: table, ...write });
    return result;
  }

  #put(key: string, value: RecordKinds[N]): Versioned<RecordKinds[N]> {
    const json = encodeRecord(this.#shape, value, `${this.#parts.table} ${key}`);
    const revision = this.#nextRevision();
    this.#upsert.run(key, revision, json);
    return this.#versioned({ key, revision, value: json });
  }

  #nextRevision(): number {
    const revision = this.#count.first()?.['revision'];
    if (typeof revision === 'number') return revision;
    throw corrupt(this.#connection.path, 'installation has no row');
  }

  #assertNewest({ key, revision }: Versioned<unknown>): void {
    const { table } = this.#parts;
    const newest = this.#select.first(key);
    if (newest === undefined) {
      throw new NotFound('RECORD_NOT_FOUND', `${table} has no ${key} any more`);
    }
    if (newest['revision'] !== revision) {
      throw new Conflict('RECORD_CHANGED', `${table} ${key} was changed in between`);
    }
  }

  #versioned({ key, revision, value }: Row): Versioned<RecordKinds[N]> {
    const isSound =
      typeof key === 'string' && typeof revision === 'number' && typeof value === 'string';
    if (!isSound) throw this.#corruptRow(key, 'has columns of other types');
    const parsed = decodeRecord(this.#shape, value);
    if (!parsed.ok) throw this.#corruptRow(key, parsed.problem);
    return Object.freeze({ key, value: parsed.value, revision });
  }

  #corruptRow(key: unknown, problem: string): Error {
    const { table } = this.#parts;
    return corrupt(this.#connection.path, `table ${table}, key ${String(key)}: ${problem}`);
  }
}
