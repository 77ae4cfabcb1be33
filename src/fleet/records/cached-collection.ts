// SPDX-License-Identifier: Apache-2.0
import type { Collection, Versioned, WriteOptions } from '../../ports/store.ts';
import type { ChangeFeed } from './change-feed.ts';

/** Called after each change with the value before and the value now. */
export type ChangeListener<T> = (before: T | undefined, after: T | undefined) => void;

/** The records of one collection in memory. An older revision never replaces a newer one. */
export class CachedCollection<T> {
  readonly #records = new Map<string, Versioned<T>>();
  readonly #collection: Collection<T>;
  readonly #feed: ChangeFeed;
  readonly #onChange: ChangeListener<T>;
  #all: readonly T[] | undefined;

  constructor(
    collection: Collection<T>,
    feed: ChangeFeed,
    onChange: ChangeListener<T> = () => undefined,
  ) {
    this.#collection = collection;
    this.#feed = feed;
    this.#onChange = onChange;
  }

  get(key: string): T | undefined {
    return this.#records.get(key)?.value;
  }

  /** Returns the same array until a record changes. */
  all(): readonly T[] {
    this.#all ??= Array.from(this.#records.values(), ({ value }) => value);
    return this.#all;
  }

  async put(key: string, value: T, options: WriteOptions): Promise<void> {
    const known = this.#records.get(key);
    const written =
      known === undefined
        ? await this.#collection.create(key, value, options)
        : await this.#collection.replace(known, value, options);
    if (!this.#feed.isNewer(written.revision)) return;
    this.#set(written);
    this.#feed.wrote(written.revision);
  }

  async remove(key: string, options: WriteOptions): Promise<void> {
    const known = this.#records.get(key);
    if (known === undefined) return;
    await this.#collection.remove(known, options);
    this.#feed.removed(key, known.revision);
    this.#drop(key, known.revision);
  }

  /** Applies the changes that a read of the store at `revision` returned. */
  applyChanges(
    records: readonly Versioned<T>[],
    removed: readonly string[],
    revision: number,
  ): void {
    for (const key of removed) this.#drop(key, revision);
    for (const record of records) {
      if (!this.#feed.isRemoved(record.key, record.revision)) this.#set(record);
    }
  }

  /** Applies a read that returned every record. */
  replaceAll(records: readonly Versioned<T>[], revision: number): void {
    const present = new Set(records.map(({ key }) => key));
    const absent = [...this.#records.keys()].filter((key) => !present.has(key));
    this.applyChanges(records, absent, revision);
  }

  #set(record: Versioned<T>): void {
    const before = this.#records.get(record.key);
    if (before !== undefined && before.revision >= record.revision) return;
    this.#records.set(record.key, record);
    this.#all = undefined;
    this.#onChange(before?.value, record.value);
  }

  /** Keeps a record that was written after `revision`. */
  #drop(key: string, revision: number): void {
    const before = this.#records.get(key);
    if (before === undefined || before.revision > revision) return;
    this.#records.delete(key);
    this.#all = undefined;
    this.#onChange(before.value, undefined);
  }
}
