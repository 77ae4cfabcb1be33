// SPDX-License-Identifier: Apache-2.0
import { isLeaseValid, type Lease, leaseExpiry } from '../../model/lease.ts';
import { Conflict, LostLeadership, NotFound } from '../errors.ts';
import type { JournalQuery } from '../journal.ts';
import { assertKey, type CollectionName, type RecordKinds } from '../record-validators.ts';

import type { LeaseRequest, StoreIdentity, Versioned } from '../store.ts';

export interface StoredRecord {
  readonly key: string;
  readonly json: string;
  readonly revision: number;
}

export interface JournalRow {
  readonly sequence: number;
  readonly at: number;
  readonly pool: string | undefined;
  readonly machine: string | undefined;
  readonly node: string | undefined;
  readonly json: string;
}

type Decoded = {
  readonly [N in CollectionName]: WeakMap<StoredRecord, Versioned<RecordKinds[N]>>;
};

/** A write to one record, with the writer's lease, if any. */
interface Write {
  readonly collection: CollectionName;
  readonly key: string;
  readonly fence: Lease | undefined;
}

interface Removal {
  readonly collection: CollectionName;
  readonly key: string;
}

/** How many revisions back removals are stored: few, so that tests reach the limit. */
const REMOVALS_KEPT = 200;

/** The content of a store in memory; every method is atomic. */
export class MemoryStoreState {
  readonly #records: Readonly<Record<CollectionName, Map<string, StoredRecord>>> = {
    intents: new Map(),
    machines: new Map(),
    drains: new Map(),
    pools: new Map(),
  };
  /** Decoded records; frozen, so that readers can share them. */
  readonly decoded: Decoded = {
    intents: new WeakMap(),
    machines: new WeakMap(),
    drains: new WeakMap(),
    pools: new WeakMap(),
  };
  #removals: readonly (Removal & { readonly revision: number })[] = [];
  readonly #leases = new Map<string, Lease>();
  #journal: JournalRow[] = [];
  #lastSequence = 0;
  #revision = 0;
  identity: StoreIdentity = {};
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  copy(): MemoryStoreState {
    const copy = new MemoryStoreState(this.#now);
    const collections: readonly CollectionName[] = ['intents', 'machines', 'drains', 'pools'];
    for (const collection of collections) {
      for (const [key, stored] of this.#records[collection])
        copy.#records[collection].set(key, stored);
    }
    for (const [name, lease] of this.#leases) copy.#leases.set(name, lease);
    copy.#removals = this.#removals;
    copy.#journal = [...this.#journal];
    copy.#lastSequence = this.#lastSequence;
    copy.#revision = this.#revision;
    copy.identity = this.identity;
    return copy;
  }

  get revision(): number {
    return this.#revision;
  }

  get(collection: CollectionName, key: string): StoredRecord | undefined {
    return this.#records[collection].get(key);
  }

  list(collection: CollectionName): readonly StoredRecord[] {
    return [...this.#records[collection].values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  since(collection: CollectionName, revision: number): readonly StoredRecord[] {
    return [...this.#records[collection].values()].filter((one) => one.revision > revision);
  }

  /** Undefined when the revision is too old. */
  removedSince(revision: number): readonly Removal[] | undefined {
    if (revision < this.#revision - REMOVALS_KEPT) return undefined;
    return this.#removals
      .filter((one) => one.revision > revision)
      .map(({ collection, key }) => ({ collection, key }));
  }

  create(write: Write, json: string): StoredRecord {
    assertKey(write.key);
    this.#assertFence(write.fence);
    if (this.get(write.collection, write.key) !== undefined) {
      throw new Conflict('RECORD_EXISTS', `${write.collection} already contains ${write.key}`);
    }
    return this.#put(write, json);
  }

  replace(write: Write & { readonly revision: number }, json: string): StoredRecord {
    this.#assertSeen(write);
    return this.#put(write, json);
  }

  remove(write: Write & { readonly revision: number }): void {
    this.#assertSeen(write);
    const { collection, key } = write;
    this.#records[collection].delete(key);
    this.#revision += 1;
    const revision = this.#revision;
    this.#removals = [...this.#removals, { collection, key, revision }].filter(
      (one) => one.revision > revision - REMOVALS_KEPT,
    );
  }

  lease(name: string): Lease | undefined {
    return this.#leases.get(name);
  }

  acquire({ name, holder, durationMs, endedHolder }: LeaseRequest): Lease {
    const last = this.#leases.get(name);
    const now = this.#now();
    const isFree = last === undefined || last.holder === holder || last.holder === endedHolder;
    if (!isFree && isLeaseValid(last, now)) {
      throw new Conflict('LEASE_HELD', `lease ${name} is held by ${last.holder}`, {
        facts: { holder: last.holder, expiresAt: last.expiresAt },
      });
    }
    return this.#putLease({
      name,
      holder,
      token: (last?.token ?? 0) + 1,
      expiresAt: leaseExpiry(now, durationMs),
    });
  }

  renew(lease: Lease, durationMs: number): Lease {
    this.#assertFence(lease);
    return this.#putLease({ ...lease, expiresAt: leaseExpiry(this.#now(), durationMs) });
  }

  /** False when the lease was no longer held. */
  release(lease: Lease): boolean {
    const current = this.#current(lease);
    if (current === undefined || current.expiresAt === 0) return false;
    const releasedAt = Math.min(this.#now(), current.expiresAt);
    this.#putLease({ ...current, expiresAt: 0, releasedAt });
    return true;
  }

  append(row: Omit<JournalRow, 'sequence'>): JournalRow {
    this.#lastSequence += 1;
    const kept = { ...row, sequence: this.#lastSequence };
    this.#journal.push(kept);
    return kept;
  }

  journal(query: JournalQuery): readonly JournalRow[] {
    const { after = 0, limit = 1000 } = query;
    const wanted = this.#journal.filter(
      (row) =>
        row.sequence > after &&
        (query.pool === undefined || row.pool === query.pool) &&
        (query.machine === undefined || row.machine === query.machine) &&
        (query.node === undefined || row.node === query.node),
    );
    return limit > 0 ? wanted.slice(-limit) : [];
  }

  prune(beforeMs: number, keep: number): number {
    const before = this.#journal.length;
    const newest = keep > 0 ? this.#journal.slice(-keep) : [];
    this.#journal = newest.filter((row) => row.at >= beforeMs);
    return before - this.#journal.length;
  }

  #put({ collection, key }: Write, json: string): StoredRecord {
    this.#revision += 1;
    const stored = { key, json, revision: this.#revision };
    this.#records[collection].set(key, stored);
    return stored;
  }

  #putLease(lease: Lease): Lease {
    const kept = Object.freeze({ ...lease });
    this.#leases.set(lease.name, kept);
    return kept;
  }

  #current(lease: Lease): Lease | undefined {
    const newest = this.#leases.get(lease.name);
    return newest?.token === lease.token && newest.holder === lease.holder ? newest : undefined;
  }

  #assertFence(fence: Lease | undefined): void {
    if (fence === undefined) return;
    const current = this.#current(fence);
    if (current === undefined || !isLeaseValid(current, this.#now())) {
      throw new LostLeadership('LEASE_LOST', `${fence.holder} no longer holds lease ${fence.name}`);
    }
  }

  #assertSeen({ collection, key, revision, fence }: Write & { readonly revision: number }): void {
    this.#assertFence(fence);
    const newest = this.get(collection, key);
    if (newest === undefined) {
      throw new NotFound('RECORD_NOT_FOUND', `${collection} no longer contains ${key}`);
    }
    if (newest.revision !== revision) {
      throw new Conflict('RECORD_CHANGED', `${collection} ${key} was changed by another write`);
    }
  }
}
