// SPDX-License-Identifier: Apache-2.0
// The records in memory, in step with the store: what this process writes is here as soon as it is durable, what
// others write after the next `follow`. Whoever decides something follows first; whoever only shows something need
// not, as long as somebody follows now and then.
import type { AddressLease } from '../../model/address-lease.ts';
import type { Drain } from '../../model/drain.ts';
import type { Intent } from '../../model/intent.ts';
import type { Machine } from '../../model/machine.ts';
import type { PoolState } from '../../model/pool.ts';
import type { ReadOptions, Store, StoreChanges } from '../../ports/store.ts';
import { CachedCollection } from './cached-collection.ts';
import { ChangeFeed } from './change-feed.ts';
import { MachineIndex } from './machine-index.ts';
import { type OverheadOf, UsageIndex } from './usage-index.ts';

export class RecordCache {
  readonly index: MachineIndex;
  readonly usage: UsageIndex;
  readonly intents: CachedCollection<Intent>;
  readonly machines: CachedCollection<Machine>;
  readonly addresses: CachedCollection<AddressLease>;
  readonly drains: CachedCollection<Drain>;
  readonly pools: CachedCollection<PoolState>;
  readonly #store: Store;
  readonly #tide = new ChangeFeed();
  #following: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(store: Store, overheadOf?: OverheadOf) {
    this.#store = store;
    const machines: CachedCollection<Machine> = new CachedCollection(
      store.machines,
      this.#tide,
      (before, after) => {
        this.index.machineChanged(before, after);
        this.usage.machineChanged(before, after);
      },
    );
    this.machines = machines;
    this.intents = new CachedCollection(store.intents, this.#tide, (before, after) =>
      this.index.intentChanged(before, after),
    );
    this.addresses = new CachedCollection(store.addresses, this.#tide);
    this.drains = new CachedCollection(store.drains, this.#tide);
    this.pools = new CachedCollection(store.pools, this.#tide);
    this.index = new MachineIndex((id) => machines.get(id));
    this.usage = new UsageIndex(() => machines.all(), overheadOf);
  }

  /** False until the first reading: there is nothing to show yet. */
  get isLoaded(): boolean {
    return this.#tide.revision !== undefined;
  }

  /** Resolves when everything that was durable at the call is here. */
  refresh(options: ReadOptions = {}): Promise<void> {
    if (this.#following === undefined) {
      this.#following = this.#follow(options).finally(() => {
        this.#following = undefined;
      });
      return this.#following;
    }
    // The one under way may have read before the call, and may end because its own caller gave up.
    this.#next ??= this.#following
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.refresh();
      });
    return this.#next;
  }

  async #follow(options: ReadOptions): Promise<void> {
    const since = this.#tide.revision;
    if (since !== undefined && (await this.#store.revision(options)) === since) return;
    this.#tide.beginRead();
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
    this.addresses.applyChanges(changes.addresses, removed('addresses'), revision);
    this.drains.applyChanges(changes.drains, removed('drains'), revision);
    this.pools.applyChanges(changes.pools, removed('pools'), revision);
    this.#tide.completeRead(revision);
  }

  #replace(everything: StoreChanges): void {
    const { revision } = everything;
    this.intents.replaceAll(everything.intents, revision);
    this.machines.replaceAll(everything.machines, revision);
    this.addresses.replaceAll(everything.addresses, revision);
    this.drains.replaceAll(everything.drains, revision);
    this.pools.replaceAll(everything.pools, revision);
    this.#tide.completeRead(revision);
  }
}

/** The mirror for those who only look. */
export interface FleetView extends Pick<RecordCache, 'isLoaded' | 'refresh'> {
  readonly index: Omit<MachineIndex, 'machineChanged' | 'intentChanged'>;
  readonly machines: Pick<CachedCollection<Machine>, 'get' | 'all'>;
  readonly pools: Pick<CachedCollection<PoolState>, 'get' | 'all'>;
}
