// SPDX-License-Identifier: Apache-2.0
import type { AddressLease } from '../model/address-lease.ts';
import type { Drain } from '../model/drain.ts';
import type { Intent } from '../model/intent.ts';
import type { Lease } from '../model/lease.ts';
import type { Machine } from '../model/machine.ts';
import type { PoolState } from '../model/pool.ts';
import type { Journal } from './journal.ts';

/** A value as it was read; `revision` is what a later write must name to prove that it saw this one. */
export interface Versioned<T> {
  readonly key: string;
  readonly value: T;
  readonly revision: number;
}

export interface WriteOptions {
  /**
   * The writer's lease. The write happens only while this very lease is current and not expired, checked in
   * the same atomic step as the write and before anything else; otherwise LostLeadership, and nothing changed.
   * Which copy is passed does not matter: one from before a renewal is as good. Drivers always pass it.
   */
  readonly fence?: Lease;
  readonly signal?: AbortSignal | undefined;
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * Records of one kind. Each write is atomic, durable when it resolves (also against power loss), visible to
 * other processes from then on, and compares before it sets: no write is ever lost to another.
 *
 * There is no transaction over several records, because not every store has one: callers order their writes
 * so that a crash between two of them is a state they can go on from.
 *
 * A write that rejects with Conflict, NotFound, LostLeadership or Cancelled changed nothing. One that rejects
 * with StoreUnusable changed nothing either, unless the disk lied; read again before repeating it. A value
 * that could not be read again (its shape is not the type's) is refused as a Bug.
 *
 * Values are copied in and frozen on their way out: nobody can change a record but by writing it.
 */
export interface Collection<T> {
  /** Undefined when there is none: absence is an answer, not an error. */
  get(key: string, options?: ReadOptions): Promise<Versioned<T> | undefined>;
  /** All records, ordered by key (code units), from one consistent reading. */
  list(options?: ReadOptions): Promise<readonly Versioned<T>[]>;
  /** Conflict/RECORD_EXISTS if the key is there, whatever its value. */
  create(key: string, value: T, options?: WriteOptions): Promise<Versioned<T>>;
  /** Conflict/RECORD_CHANGED if `seen` is not the newest; NotFound/RECORD_NOT_FOUND if it is gone. */
  replace(seen: Versioned<T>, value: T, options?: WriteOptions): Promise<Versioned<T>>;
  /** As replace. Removing what is already gone is NotFound: the caller may treat it as done. */
  remove(seen: Versioned<T>, options?: WriteOptions): Promise<void>;
}

export interface LeaseRequest {
  readonly name: string;
  readonly holder: string;
  readonly durationMs: number;
}

/** Exclusive, expiring, fenced. Time is the store's Clock; processes on one machine share its wall clock. */
export interface Leases {
  /**
   * Takes the lease if it is free, expired, or held under the very name that asks (a process that lost the
   * answer to its first try, or its successor: whoever asks last has it). The token grows each time.
   * Conflict/LEASE_HELD while another's is valid; its facts name `holder` and `expiresAt`.
   */
  acquire(request: LeaseRequest, options?: ReadOptions): Promise<Lease>;
  /**
   * Prolongs from now; same token. LostLeadership once it expired, was released or taken: an expired lease
   * cannot be renewed even if nobody took it, because somebody may be about to.
   */
  renew(lease: Lease, durationMs: number, options?: ReadOptions): Promise<Lease>;
  /**
   * Gives it back, so that a successor need not wait; it reads as expired since ever. Releasing one that is no
   * longer ours does nothing.
   */
  release(lease: Lease): Promise<void>;
  /** The newest lease of that name, expired or not; undefined if there never was one. */
  read(name: string, options?: ReadOptions): Promise<Lease | undefined>;
}

/** What became of a store between two revisions; of a record only its newest value. */
export interface StoreChanges {
  /** A picture of the revision asked about, with these changes put on it, is a picture of this one. */
  readonly revision: number;
  readonly intents: readonly Versioned<Intent>[];
  readonly machines: readonly Versioned<Machine>[];
  readonly addresses: readonly Versioned<AddressLease>[];
  readonly drains: readonly Versioned<Drain>[];
  readonly pools: readonly Versioned<PoolState>[];
  /** Comes first: a key that was made anew is among the records too. */
  readonly removed: readonly { readonly collection: string; readonly key: string }[];
}

/** Several processes may have the same store open at once. */
export interface Store {
  /** Written by faces, closed by the driver. Key = intent id. */
  readonly intents: Collection<Intent>;
  /** Written by the driver alone. Key = machine id. */
  readonly machines: Collection<Machine>;
  /** Written by the driver alone. Key = addressLeaseKey. */
  readonly addresses: Collection<AddressLease>;
  /** Written by the driver alone. Key = machine id. */
  readonly drains: Collection<Drain>;
  /** Written by the driver alone. Key = pool name. */
  readonly pools: Collection<PoolState>;
  readonly leases: Leases;
  readonly journal: Journal;
  /**
   * A number that changes with every write to a collection by any process (not by leases or the journal),
   * and with nothing else: equal means that a list read since would be the same. Cheap enough to poll.
   */
  revision(options?: ReadOptions): Promise<number>;
  /**
   * Everything that was written after that revision, in one consistent reading; without a revision, everything.
   * Undefined when what was removed since is no longer known: read everything then. A record's own revision is
   * the store's at its last write, so they grow from write to write.
   */
  changes(since: number | undefined, options?: ReadOptions): Promise<StoreChanges | undefined>;
  /**
   * The id of this installation where Kubernetes cannot give one: the first caller's `candidate` is kept for
   * ever, every later call gets that one back.
   */
  installationId(candidate: string): Promise<string>;
  /** Waits for writes under way. Idempotent. Every later call rejects with Cancelled. */
  close(): Promise<void>;
}
