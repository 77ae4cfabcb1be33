// SPDX-License-Identifier: Apache-2.0
// The store's records in memory. A write of this process is here as soon as it is durable, a write of another process
// after the next `refresh`. Code that decides calls `refresh` first; code that only displays may read as it is.
import type { Drain } from '../../model/drain.ts';
import type { Intent } from '../../model/intent.ts';
import type { Machine } from '../../model/machine.ts';
import type { PoolState } from '../../model/pool.ts';
import type {
  Collection,
  ReadOptions,
  Store,
  StoreChanges,
  Versioned,
  WriteOptions,
} from '../../ports/store.ts';
import { MachineIndex } from './machine-index.ts';
import { type MemoryOverhead, UsageIndex } from './usage-index.ts';

export class RecordCache {
  readonly index: MachineIndex;
  readonly usage: UsageIndex;
  readonly intents: CachedCollection<Intent>;
  readonly machines: CachedCollection<Machine>;
  readonly drains: CachedCollection<Drain>;
  readonly pools: CachedCollection<PoolState>;
  /** Machines that this process has requested. */
  readonly requestedHere = new Set<string>();
  readonly #store: Store;
  readonly #feed = new ChangeFeed();
  #current: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #poolChanges: Promise<void> = Promise.resolve();

  constructor(store: Store, memoryOverhead?: MemoryOverhead) {
    this.#store = store;
    const machines: CachedCollection<Machine> = new CachedCollection(
      store.machines,
      this.#feed,
      (before, after) => {
        this.index.machineChanged(before, after);
        this.usage.machineChanged(before, after);
        if (before !== undefined && after === undefined) this.requestedHere.delete(before.id);
      },
    );
    this.machines = machines;
    this.intents = new CachedCollection(store.intents, this.#feed, (before, after) =>
      this.index.intentChanged(before, after),
    );
    this.drains = new CachedCollection(store.drains, this.#feed);
    this.pools = new CachedCollection(store.pools, this.#feed);
    this.index = new MachineIndex((id) => machines.get(id));
    this.usage = new UsageIndex(() => machines.all(), memoryOverhead);
  }

  /** False until the first read of the store. */
  get isLoaded(): boolean {
    return this.#feed.revision !== undefined;
  }

  /** Resolves when everything that was durable at the time of the call is in memory. */
  refresh(options: ReadOptions = {}): Promise<void> {
    if (this.#current === undefined) {
      this.#current = this.#read(options).finally(() => {
        this.#current = undefined;
      });
      return this.#current;
    }
    // The read in progress may have begun before a write that this caller must see, and its caller may cancel it.
    this.#next ??= this.#current
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.refresh();
      });
    return this.#next;
  }

  /** Runs changes of pool records one after the other, for all passes and workers of this process. */
  runPoolChange(change: () => Promise<void>): Promise<void> {
    const next = this.#poolChanges.then(change);
    this.#poolChanges = next.catch(() => undefined);
    return next;
  }

  async #read(options: ReadOptions): Promise<void> {
    const since = this.#feed.revision;
    if (since !== undefined && (await this.#store.revision(options)) === since) return;
    this.#feed.beginRead();
    const changes = await this.#store.changes(since, options);
    if (changes !== undefined && since !== undefined) return this.#apply(changes);
    const everything = changes ?? (await this.#store.changes(undefined, options));
    if (everything !== undefined) this.#replace(everything);
  }

  #apply(changes: StoreChanges): void {
    const { revision } = changes;
    const removed = (name: string) =>
      changes.removed.filter(({ collection }) => collection === name).map(({ key }) => key);
    this.intents.applyChanges(changes.intents, removed('intents'), revision);
    this.machines.applyChanges(changes.machines, removed('machines'), revision);
    this.drains.applyChanges(changes.drains, removed('drains'), revision);
    this.pools.applyChanges(changes.pools, removed('pools'), revision);
    this.#feed.completeRead(revision);
  }

  #replace(everything: StoreChanges): void {
    const { revision } = everything;
    this.intents.replaceAll(everything.intents, revision);
    this.machines.replaceAll(everything.machines, revision);
    this.drains.replaceAll(everything.drains, revision);
    this.pools.replaceAll(everything.pools, revision);
    this.#feed.completeRead(revision);
  }
}

/** Read-only access to the cache. */
export interface FleetView extends Pick<RecordCache, 'isLoaded' | 'refresh'> {
  readonly index: Omit<MachineIndex, 'machineChanged' | 'intentChanged'>;
  readonly machines: Pick<CachedCollection<Machine>, 'get' | 'all'>;
  readonly intents: Pick<CachedCollection<Intent>, 'get' | 'all'>;
  readonly pools: Pick<CachedCollection<PoolState>, 'get' | 'all'>;
  /** By machine id. Includes drains that are over, for a while. */
  readonly drains: Pick<CachedCollection<Drain>, 'get' | 'all'>;
}

/** Called after each change with the value before and the value now. */
type ChangeListener<T> = (before: T | undefined, after: T | undefined) => void;

/** The records of one collection in memory. An older revision never replaces a newer one. */
class CachedCollection<T> {
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

/** How far the store has been read, and how that orders our own writes against the records being read. */
class ChangeFeed {
  #revision: number | undefined;
  #removedDuringRead: Map<string, number> | undefined;

  /** Undefined before the first read. */
  get revision(): number | undefined {
    return this.#revision;
  }

  /** Records that this process removes from here on may still be in the result of the read. */
  beginRead(): void {
    this.#removedDuringRead = new Map();
  }

  completeRead(revision: number): void {
    this.#revision = Math.max(this.#revision ?? 0, revision);
    this.#removedDuringRead = undefined;
  }

  /** False when a completed read already contains this revision or a later one. */
  isNewer(revision: number): boolean {
    return this.#revision !== undefined && revision > this.#revision;
  }

  wrote(revision: number): void {
    if (this.#revision !== undefined && revision === this.#revision + 1) this.#revision = revision;
  }

  removed(key: string, revision: number): void {
    this.#removedDuringRead?.set(key, revision);
  }

  /** Whether this process removed the record while it was being read. */
  isRemoved(key: string, revision: number): boolean {
    const removedAt = this.#removedDuringRead?.get(key);
    return removedAt !== undefined && revision <= removedAt;
  }
}
