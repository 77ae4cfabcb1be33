// SPDX-License-Identifier: Apache-2.0
// The records of one round: read once, then kept in step with every write. All writes of the driver go through
// here and are fenced; nobody else writes these collections, so what is here is what is in the store.
import { type AddressLease, addressLeaseKey } from '../model/address-lease.ts';
import type { Intent } from '../model/intent.ts';
import type { Lease } from '../model/lease.ts';
import { type Machine, moved, type Phase, type TaskUnderWay } from '../model/machine.ts';
import type { MachineId } from '../model/machine-id.ts';
import type { PoolState } from '../model/pool.ts';
import { Bug, Conflict } from '../ports/errors.ts';
import type { Collection, Store, Versioned } from '../ports/store.ts';

/** What may be changed without a move. `undefined` takes a fact away. */
export type Changes = Partial<
  Omit<Machine, 'id' | 'phase' | 'phaseSince' | 'task' | 'seedVolume'>
> & {
  readonly task?: TaskUnderWay | undefined;
  readonly seedVolume?: string | undefined;
};

class Shelf<T> {
  readonly #collection: Collection<T>;
  readonly #fence: Lease;
  readonly #records = new Map<string, Versioned<T>>();

  constructor(collection: Collection<T>, fence: Lease) {
    this.#collection = collection;
    this.#fence = fence;
  }

  async read(): Promise<this> {
    for (const record of await this.#collection.list()) this.#records.set(record.key, record);
    return this;
  }

  get(key: string): T | undefined {
    return this.#records.get(key)?.value;
  }

  all(): readonly T[] {
    return [...this.#records.values()].map(({ value }) => value);
  }

  async put(key: string, value: T): Promise<void> {
    const options = { fence: this.#fence };
    const seen = this.#records.get(key);
    const written =
      seen === undefined
        ? await this.#collection.create(key, value, options)
        : await this.#collection.replace(seen, value, options);
    this.#records.set(key, written);
  }

  async remove(key: string): Promise<void> {
    const seen = this.#records.get(key);
    if (seen === undefined) return;
    await this.#collection.remove(seen, { fence: this.#fence });
    this.#records.delete(key);
  }
}

export class Books {
  readonly #machines: Shelf<Machine>;
  readonly #addresses: Shelf<AddressLease>;
  readonly #intents: Shelf<Intent>;
  readonly #pools: Shelf<PoolState>;
  readonly #now: () => number;
  #poolChanges: Promise<void> = Promise.resolve();

  private constructor(store: Store, fence: Lease, now: () => number) {
    this.#machines = new Shelf(store.machines, fence);
    this.#addresses = new Shelf(store.addresses, fence);
    this.#intents = new Shelf(store.intents, fence);
    this.#pools = new Shelf(store.pools, fence);
    this.#now = now;
  }

  static async open(store: Store, fence: Lease, now: () => number): Promise<Books> {
    const books = new Books(store, fence, now);
    // Intents first: one that is written meanwhile waits a round, and no record is newer than its intent.
    await books.#intents.read();
    await Promise.all([books.#machines.read(), books.#addresses.read(), books.#pools.read()]);
    return books;
  }

  get machines(): readonly Machine[] {
    return this.#machines.all();
  }

  get addresses(): readonly AddressLease[] {
    return this.#addresses.all();
  }

  get intents(): readonly Intent[] {
    return this.#intents.all();
  }

  find(id: MachineId): Machine | undefined {
    return this.#machines.get(id);
  }

  machine(id: MachineId): Machine {
    const machine = this.#machines.get(id);
    if (machine === undefined) throw new Bug('BUG', `machine ${id} has no record`);
    return machine;
  }

  pool(name: string): PoolState {
    return this.#pools.get(name) ?? { pool: name, allocatable: {} };
  }

  /**
   * One change after the other: machines are worked on side by side, and several of one pool may have something to
   * say about it. Undefined changes nothing.
   */
  changePool(name: string, change: (state: PoolState) => PoolState | undefined): Promise<void> {
    const next = this.#changePool(this.#poolChanges, name, change);
    this.#poolChanges = next.catch(() => undefined);
    return next;
  }

  async #changePool(
    before: Promise<void>,
    name: string,
    change: (state: PoolState) => PoolState | undefined,
  ): Promise<void> {
    await before;
    const state = change(this.pool(name));
    if (state !== undefined) await this.#pools.put(name, state);
  }

  putIntent(intent: Intent): Promise<void> {
    return this.#intents.put(intent.id, intent);
  }

  removeIntent(id: string): Promise<void> {
    return this.#intents.remove(id);
  }

  /** A new machine, or a new life of one whose record says that it is over. */
  putMachine(machine: Machine): Promise<void> {
    return this.#machines.put(machine.id, machine);
  }

  update(id: MachineId, changes: Changes): Promise<void> {
    return this.putMachine(changed(this.machine(id), changes));
  }

  /** A task belongs to the phase it was started in: a move forgets it unless told otherwise. */
  async move(id: MachineId, to: Phase, changes: Changes = {}): Promise<void> {
    const next = moved(this.machine(id), to, this.#now());
    if (!next.ok) throw new Bug('BUG', next.problem);
    await this.putMachine(changed(next.value, { task: undefined, ...changes }));
  }

  removeMachine(id: MachineId): Promise<void> {
    return this.#machines.remove(id);
  }

  async leaseAddress(lease: AddressLease): Promise<void> {
    const key = addressLeaseKey(lease.region, lease.address);
    const held = this.#addresses.get(key);
    if (held !== undefined && held.releasedAt === undefined && held.machine !== lease.machine) {
      throw new Conflict('RECORD_EXISTS', `${lease.address} is leased to machine ${held.machine}`);
    }
    await this.#addresses.put(key, lease);
  }

  async releaseAddresses(machine: MachineId): Promise<void> {
    for (const lease of this.addresses) {
      if (lease.machine !== machine || lease.releasedAt !== undefined) continue;
      await this.#addresses.put(addressLeaseKey(lease.region, lease.address), {
        ...lease,
        releasedAt: this.#now(),
      });
    }
  }

  removeAddress(lease: AddressLease): Promise<void> {
    return this.#addresses.remove(addressLeaseKey(lease.region, lease.address));
  }
}

function changed(machine: Machine, changes: Changes): Machine {
  const { task, seedVolume, ...rest } = { ...machine, ...changes };
  return {
    ...rest,
    ...(task !== undefined && { task }),
    ...(seedVolume !== undefined && { seedVolume }),
  };
}
