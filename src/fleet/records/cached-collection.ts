// SPDX-License-Identifier: Apache-2.0
import type { Collection, Versioned, WriteOptions } from '../../ports/store.ts';
import type { ChangeFeed } from './change-feed.ts';

/** Hears of each change: what a key held, and what it holds now. */
export type ChangeListener<T> = (before: T | undefined, after: T | undefined) => void;

/** The records of one collection in memory. Never goes back: an older value does not replace a newer one. */
export class CachedCollection<T> {
  readonly #records = new Map<string, Versioned<T>>();
  readonly #collection: Collection<T>;
  readonly #tide: ChangeFeed;
  readonly #watch: ChangeListener<T>;
  #all: readonly T[] | undefined;

  constructor(
    collection: Collection<T>,
    tide: ChangeFeed,
    watch: ChangeListener<T> = () => undefined,
  ) {
    this.#collection = collection;
    this.#tide = tide;
    this.#watch = watch;
  }

  get(key: string): T | undefined {
    return this.#records.get(key)?.value;
  }

  /** The same array until something changes. */
  all(): readonly T[] {
    this.#all ??= Array.from(this.#records.values(), ({ value }) => value);
    return this.#all;
  }

  async put(key: string, value: T, options: WriteOptions): Promise<void> {
    const seen = this.#records.get(key);
    const written =
      seen === undefined
        ? await this.#collection.create(key, value, options)
        : await this.#collection.replace(seen, value, options);
    if (!this.#tide.isNewer(written.revision)) return;
    this.#set(written);
    this.#tide.wrote(written.revision);
  }

  async remove(key: string, options: WriteOptions): Promise<void> {
    const seen = this.#records.get(key);
    if (seen === undefined) return;
    await this.#collection.remove(seen, options);
    this.#tide.removed(key, seen.revision);
    this.#drop(key, seen.revision);
  }

  /** What a reading of the store as it was at that revision says. */
  applyChanges(
    records: readonly Versioned<T>[],
    removed: readonly string[],
    revision: number,
  ): void {
    for (const key of removed) this.#drop(key, revision);
    for (const record of records) {
      if (!this.#tide.isRemoved(record.key, record.revision)) this.#set(record);
    }
  }

  /** The same of a reading that has every record. */
  replaceAll(records: readonly Versioned<T>[], revision: number): void {
    const there = new Set(records.map(({ key }) => key));
    this.applyChanges(
      records,
      [...this.#records.keys()].filter((key) => !there.has(key)),
      revision,
    );
  }

  #set(record: Versioned<T>): void {
    const before = this.#records.get(record.key);
    if (before !== undefined && before.revision >= record.revision) return;
    this.#records.set(record.key, record);
    this.#all = undefined;
    this.#watch(before?.value, record.value);
  }

  /** Unless it was written after that revision. */
  #drop(key: string, revision: number): void {
    const before = this.#records.get(key);
    if (before === undefined || before.revision > revision) return;
    this.#records.delete(key);
    this.#all = undefined;
    this.#watch(before.value, undefined);
  }
}
