// SPDX-License-Identifier: Apache-2.0
import type { Drain } from '../model/drain.ts';
import type { Intent } from '../model/intent.ts';
import type { Lease } from '../model/lease.ts';
import type { Machine } from '../model/machine.ts';
import type { PoolState } from '../model/pool.ts';
import type { Journal } from './journal.ts';

/**
 * `deferMs` of what its writer finds out again after a crash: long enough that the creation of a machine needs no write for
 * its progress.
 */
export const DEFER_MS = 5 * 60_000;

/**
 * A value with the revision that it was read at; a later write names it for compare-and-set. Only the process that read
 * it can use it.
 */
export interface Versioned<T> {
  readonly key: string;
  readonly value: T;
  readonly revision: number;
}

export interface WriteOptions {
  /**
   * The writer's lease. The write happens only while this lease is current and not expired, checked first and in the
   * same atomic step as the write; otherwise it rejects with LostLeadership and changes nothing. A copy from before a
   * renewal is valid too. The driver always passes it.
   */
  readonly fence?: Lease;
  /**
   * For how many milliseconds a crash may lose the write; the record is then as before it, and a new one does not exist.
   * This process sees it at once. A store for which each write is expensive combines it with the next write to the same
   * record, or to one that it keeps with it; otherwise it writes it after that time, when the fence is released or when
   * the store is closed. Infinity: only then.
   */
  readonly deferMs?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * Records of one kind. Each write is atomic, durable when it resolves (also against power loss; `deferMs` is the
 * exception), and a compare-and-set: no write overwrites another unseen. A process sees its own writes at once, and
 * those of other processes soon, at the latest after `synchronize`.
 *
 * There are no transactions over several records, because not every store supports them: callers order their writes so
 * that they can recover from a crash between any two.
 *
 * A write that rejects with Conflict, NotFound, LostLeadership or Cancelled changed nothing. A write that rejects with
 * StoreUnusable changed nothing either, unless the disk reported wrongly; read again before repeating it. One that rejects
 * with Unreachable or TimedOut may still take effect; repeating it is safe, because it is a compare-and-set. A value that
 * does not match its type is refused as a Bug, because it could not be read again.
 *
 * Values are copied on write and frozen on read: only a write changes a record.
 */
export interface Collection<T> {
  /** Undefined when the record does not exist. */
  get(key: string, options?: ReadOptions): Promise<Versioned<T> | undefined>;
  /** All records, ordered by key (code units), from one consistent snapshot. */
  list(options?: ReadOptions): Promise<readonly Versioned<T>[]>;
  /** Conflict/RECORD_EXISTS if the key exists, whatever its value. */
  create(key: string, value: T, options?: WriteOptions): Promise<Versioned<T>>;
  /** Conflict/RECORD_CHANGED if `seen` is not the newest revision; NotFound/RECORD_NOT_FOUND if the record is gone. */
  replace(seen: Versioned<T>, value: T, options?: WriteOptions): Promise<Versioned<T>>;
  /** Rejects like `replace`. NotFound when the record is already gone; the caller may treat that as success. */
  remove(seen: Versioned<T>, options?: WriteOptions): Promise<void>;
}

export interface LeaseRequest {
  readonly name: string;
  readonly holder: string;
  readonly durationMs: number;
  /** A holder whose process is known to have ended: its lease is free at once. */
  readonly endedHolder?: string | undefined;
}

/** Exclusive, expiring, fenced leases. Time is the store's Clock: processes on one machine share its wall clock. */
export interface StoreLeases {
  /**
   * Acquires the lease if it is free, expired, held by `endedHolder`, or held by the same holder name (a process that lost the response to its
   * first attempt, or its successor: the last caller holds the lease). The token grows each time.
   * Conflict/LEASE_HELD while another holder's lease is valid; the facts contain `holder` and `expiresAt`.
   */
  acquire(request: LeaseRequest, options?: ReadOptions): Promise<Lease>;
  /**
   * Extends the lease from now, with the same token. LostLeadership once it has expired, was released or was acquired by
   * another holder. An expired lease cannot be renewed even while it is free, because another process may be acquiring it.
   */
  renew(lease: Lease, durationMs: number, options?: ReadOptions): Promise<Lease>;
  /**
   * Expires the lease immediately, so that the next holder need not wait. Has no effect on a lease that is no longer
   * held.
   */
  release(lease: Lease): Promise<void>;
  /** The newest lease of that name, expired or not; undefined if there has never been one. */
  read(name: string, options?: ReadOptions): Promise<Lease | undefined>;
}

/** The changes between two revisions of a store; of each record only the newest value. */
export interface StoreChanges {
  /** Applying these changes to a copy of the requested revision yields a copy of this revision. */
  readonly revision: number;
  readonly intents: readonly Versioned<Intent>[];
  readonly machines: readonly Versioned<Machine>[];
  readonly drains: readonly Versioned<Drain>[];
  readonly pools: readonly Versioned<PoolState>[];
  /** Apply removals first: a key that was created again is also among the records. */
  readonly removed: readonly { readonly collection: string; readonly key: string }[];
}

/** What the records belong to. */
export interface StoreIdentity {
  /** In the ownership markers of all machines of these records. */
  readonly id?: string;
  /** UID of the Kubernetes cluster; absent until the first connection to it. */
  readonly clusterUid?: string;
}

/** Several processes may open the same store at the same time. */
export interface Store {
  /**
   * Written by front ends, closed by the driver. Key = intent id. Other processes may see an intent that is done as
   * removed, unless it decides about one VM.
   */
  readonly intents: Collection<Intent>;
  /** Written only by the driver. Key = machine id. */
  readonly machines: Collection<Machine>;
  /** Written only by the driver. Key = machine id. */
  readonly drains: Collection<Drain>;
  /** Written only by the driver. Key = pool name. */
  readonly pools: Collection<PoolState>;
  readonly leases: StoreLeases;
  readonly journal: Journal;
  /**
   * Resolves when this process has seen every write that was complete before the call. A driver calls it before it
   * decides anything; opening a store includes it.
   */
  synchronize(options?: ReadOptions): Promise<void>;
  /** Sends the deferred writes of this lease; a driver calls it while it still leads. Absent: none is ever deferred. */
  flush?(lease: Lease): Promise<void>;
  /** Why writes of other processes may be missing for longer than usual; undefined: they are not. Absent: never. */
  staleness?(): string | undefined;
  /**
   * A number that changes with every write to a collection by any process, but not with leases or the journal. While it
   * is equal, lists return the same records. Cheap enough to poll. Numbers of different processes cannot be compared.
   */
  revision(options?: ReadOptions): Promise<number>;
  /**
   * All changes after that revision, from one consistent snapshot; without a revision, all records. Undefined when the
   * removals since then are no longer stored: read everything instead. A record's revision is the store's revision at
   * its last write.
   */
  changes(since: number | undefined, options?: ReadOptions): Promise<StoreChanges | undefined>;
  /** Stores the values of `candidate` that are not stored yet, and returns all. A stored value never changes. */
  identity(candidate?: StoreIdentity): Promise<StoreIdentity>;
  /** Waits for writes in progress. Idempotent. Every later call rejects with Cancelled. */
  close(): Promise<void>;
}
