// SPDX-License-Identifier: Apache-2.0
// The records of one round: brought up to date once, then kept in step with every write. All writes of the driver go
// through here and are fenced; nobody else writes these collections but by asking for something, so what is here
// is what is in the store. An intent of this desk shows up at once, one of another desk or process after `follow`.
import { type AddressLease, addressLeaseKey } from '../../model/address-lease.ts';
import type { Intent } from '../../model/intent.ts';
import type { Lease } from '../../model/lease.ts';
import {
  type Machine,
  type MachineFailure,
  moved,
  type Phase,
  type TaskUnderWay,
} from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import type { PoolState } from '../../model/pool.ts';
import { Bug, Conflict } from '../../ports/errors.ts';
import type { Member } from './members.ts';
import type { RecordCache } from './record-cache.ts';
import type { UsageIndex } from './usage-index.ts';

/** What may be changed without a move. `undefined` takes a fact away. */
export type MachineChanges = Partial<
  Omit<Machine, 'id' | 'phase' | 'phaseSince' | 'task' | 'seedVolume' | 'failure'>
> & {
  readonly failure?: MachineFailure | undefined;
  readonly task?: TaskUnderWay | undefined;
  readonly seedVolume?: string | undefined;
};

export class Records {
  readonly #mirror: RecordCache;
  readonly #fence: { readonly fence: Lease };
  readonly #now: () => number;
  #poolChanges: Promise<void> = Promise.resolve();

  private constructor(cache: RecordCache, fence: Lease, now: () => number) {
    this.#mirror = cache;
    this.#fence = { fence };
    this.#now = now;
  }

  static async open(cache: RecordCache, fence: Lease, now: () => number): Promise<Records> {
    await cache.refresh();
    return new Records(cache, fence, now);
  }

  /** What others asked for since the round began, for who is about to do what cannot be called off any more. */
  refresh(): Promise<void> {
    return this.#mirror.refresh();
  }

  get machines(): readonly Machine[] {
    return this.#mirror.machines.all();
  }

  get addresses(): readonly AddressLease[] {
    return this.#mirror.addresses.all();
  }

  get intents(): readonly Intent[] {
    return this.#mirror.intents.all();
  }

  /** The same machines, by what placement asks of them. */
  get usage(): Omit<UsageIndex, 'machineChanged'> {
    return this.#mirror.usage;
  }

  membersOf(pool: string): readonly Member[] {
    return this.#mirror.index.membersOf(pool);
  }

  /** Whether somebody asked to take it away and nobody has begun. */
  isDeletionRequested(id: MachineId): boolean {
    return this.#mirror.index.isDeletionRequested(id);
  }

  find(id: MachineId): Machine | undefined {
    return this.#mirror.machines.get(id);
  }

  machine(id: MachineId): Machine {
    const machine = this.#mirror.machines.get(id);
    if (machine === undefined) throw new Bug('BUG', `machine ${id} has no record`);
    return machine;
  }

  pool(name: string): PoolState {
    return this.#mirror.pools.get(name) ?? { pool: name, allocatable: {} };
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
    if (state !== undefined) await this.#mirror.pools.put(name, state, this.#fence);
  }

  putIntent(intent: Intent): Promise<void> {
    return this.#mirror.intents.put(intent.id, intent, this.#fence);
  }

  removeIntent(id: string): Promise<void> {
    return this.#mirror.intents.remove(id, this.#fence);
  }

  /** A new machine, or a new life of one whose record says that it is over. */
  putMachine(machine: Machine): Promise<void> {
    return this.#mirror.machines.put(machine.id, machine, this.#fence);
  }

  update(id: MachineId, changes: MachineChanges): Promise<void> {
    return this.putMachine(changed(this.machine(id), changes));
  }

  /** A task belongs to the phase it was started in: a move forgets it unless told otherwise. */
  async move(id: MachineId, to: Phase, changes: MachineChanges = {}): Promise<void> {
    const next = moved(this.machine(id), to, this.#now());
    if (!next.ok) throw new Bug('BUG', next.problem);
    await this.putMachine(changed(next.value, { task: undefined, ...changes }));
  }

  removeMachine(id: MachineId): Promise<void> {
    return this.#mirror.machines.remove(id, this.#fence);
  }

  async leaseAddress(lease: AddressLease): Promise<void> {
    const key = addressLeaseKey(lease.region, lease.address);
    const held = this.#mirror.addresses.get(key);
    if (held !== undefined && held.releasedAt === undefined && held.machine !== lease.machine) {
      throw new Conflict('RECORD_EXISTS', `${lease.address} is leased to machine ${held.machine}`);
    }
    await this.#mirror.addresses.put(key, lease, this.#fence);
  }

  /** All but those under the keys that it keeps. */
  async releaseAddresses(machine: MachineId, kept: readonly string[] = []): Promise<void> {
    for (const lease of this.addresses) {
      if (lease.machine !== machine || lease.releasedAt !== undefined) continue;
      const key = addressLeaseKey(lease.region, lease.address);
      if (kept.includes(key)) continue;
      const released = { ...lease, releasedAt: this.#now() };
      await this.#mirror.addresses.put(key, released, this.#fence);
    }
  }

  removeAddress(lease: AddressLease): Promise<void> {
    return this.#mirror.addresses.remove(addressLeaseKey(lease.region, lease.address), this.#fence);
  }
}

function changed(machine: Machine, changes: MachineChanges): Machine {
  const { task, seedVolume, failure, ...rest } = { ...machine, ...changes };
  return {
    ...rest,
    ...(task !== undefined && { task }),
    ...(seedVolume !== undefined && { seedVolume }),
    ...(failure !== undefined && { failure }),
  };
}
