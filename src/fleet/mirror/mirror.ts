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
import { Census, type OverheadOf } from './census.ts';
import { Roster } from './roster.ts';
import { Shelf } from './shelf.ts';
import { Tide } from './tide.ts';

export class Mirror {
  readonly roster: Roster;
  readonly census: Census;
  readonly intents: Shelf<Intent>;
  readonly machines: Shelf<Machine>;
  readonly addresses: Shelf<AddressLease>;
  readonly drains: Shelf<Drain>;
  readonly pools: Shelf<PoolState>;
  readonly #store: Store;
  readonly #tide = new Tide();
  #following: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(store: Store, overheadOf?: OverheadOf) {
    this.#store = store;
    const machines: Shelf<Machine> = new Shelf(store.machines, this.#tide, (before, after) => {
      this.roster.machineChanged(before, after);
      this.census.machineChanged(before, after);
    });
    this.machines = machines;
    this.intents = new Shelf(store.intents, this.#tide, (before, after) =>
      this.roster.intentChanged(before, after),
    );
    this.addresses = new Shelf(store.addresses, this.#tide);
    this.drains = new Shelf(store.drains, this.#tide);
    this.pools = new Shelf(store.pools, this.#tide);
    this.roster = new Roster((id) => machines.get(id));
    this.census = new Census(() => machines.all(), overheadOf);
  }

  /** False until the first reading: there is nothing to show yet. */
  get isRead(): boolean {
    return this.#tide.seen !== undefined;
  }

  /** Resolves when everything that was durable at the call is here. */
  follow(options: ReadOptions = {}): Promise<void> {
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
        return this.follow();
      });
    return this.#next;
  }

  async #follow(options: ReadOptions): Promise<void> {
    const since = this.#tide.seen;
    if (since !== undefined && (await this.#store.revision(options)) === since) return;
    this.#tide.turn();
    const changes = await this.#store.changes(since, options);
    if (changes !== undefined && since !== undefined) return this.#apply(changes);
    const everything = changes ?? (await this.#store.changes(undefined, options));
    if (everything !== undefined) this.#replace(everything);
  }

  #apply(changes: StoreChanges): void {
    const { revision } = changes;
    const removed = (name: string) =>
      changes.removed.filter(({ collection }) => collection === name).map(({ key }) => key);
    this.intents.read(changes.intents, removed('intents'), revision);
    this.machines.read(changes.machines, removed('machines'), revision);
    this.addresses.read(changes.addresses, removed('addresses'), revision);
    this.drains.read(changes.drains, removed('drains'), revision);
    this.pools.read(changes.pools, removed('pools'), revision);
    this.#tide.reached(revision);
  }

  #replace(everything: StoreChanges): void {
    const { revision } = everything;
    this.intents.readAll(everything.intents, revision);
    this.machines.readAll(everything.machines, revision);
    this.addresses.readAll(everything.addresses, revision);
    this.drains.readAll(everything.drains, revision);
    this.pools.readAll(everything.pools, revision);
    this.#tide.reached(revision);
  }
}

/** The mirror for those who only look. */
export interface Picture extends Pick<Mirror, 'isRead' | 'follow'> {
  readonly roster: Omit<Roster, 'machineChanged' | 'intentChanged'>;
  readonly machines: Pick<Shelf<Machine>, 'get' | 'all'>;
  readonly pools: Pick<Shelf<PoolState>, 'get' | 'all'>;
}
