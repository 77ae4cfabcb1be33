// SPDX-License-Identifier: Apache-2.0
import type { JournalEntry } from '../model/journal-entry.ts';
import { isLeaseValid, type Lease, leaseExpiry } from '../model/lease.ts';
import { Conflict, LostLeadership } from '../ports/errors.ts';
import type { Journal, JournalQuery, JournalRecord } from '../ports/journal.ts';
import {
  type CollectionName,
  decodeRecord,
  encodeRecord,
  JOURNAL_VALIDATOR,
} from '../ports/record-validators.ts';
import type {
  LeaseRequest,
  ReadOptions,
  Store,
  StoreChanges,
  StoreIdentity,
  StoreLeases,
} from '../ports/store.ts';
import type { StoreObserver } from '../ports/store-write.ts';
import type { DatabaseConnection, Row, Statement } from './database-connection.ts';
import { REMOVALS_KEPT } from './schema.ts';
import { SqliteCollection } from './sqlite-collection.ts';
import { databaseCorrupt } from './store-errors.ts';

/** The Store over one connection. The constructor prepares every statement, so a missing table fails there. */
export class SqliteStore implements Store {
  readonly intents: SqliteCollection<'intents'>;
  readonly machines: SqliteCollection<'machines'>;
  readonly drains: SqliteCollection<'drains'>;
  readonly pools: SqliteCollection<'pools'>;
  readonly leases: SqliteLeases;
  readonly journal: SqliteJournal;

  readonly #connection: DatabaseConnection;
  readonly #onWrite: StoreObserver;
  readonly #installation: Statement;
  readonly #setIdentity: Statement;
  readonly #removals: Statement;

  constructor(connection: DatabaseConnection, onWrite: StoreObserver) {
    this.#connection = connection;
    this.#onWrite = onWrite;
    this.leases = new SqliteLeases(connection, onWrite);
    this.journal = new SqliteJournal(connection, onWrite);
    this.intents = this.#collection('intents');
    this.machines = this.#collection('machines');
    this.drains = this.#collection('drains');
    this.pools = this.#collection('pools');
    this.#installation = connection.prepare('SELECT revision, id, cluster_uid FROM installation');
    this.#setIdentity = connection.prepare('UPDATE installation SET id = ?, cluster_uid = ?');
    this.#removals = connection.prepare(
      'SELECT collection, key FROM removals WHERE revision > ? ORDER BY revision',
    );
  }

  /** Every connection reads what is committed. */
  synchronize({ signal }: ReadOptions = {}): Promise<void> {
    return this.#connection.read(signal, () => undefined);
  }

  revision(options: ReadOptions = {}): Promise<number> {
    return this.#connection.read(options.signal, () => this.#readRevision());
  }

  changes(since: number | undefined, options: ReadOptions = {}): Promise<StoreChanges | undefined> {
    return this.#connection.readSnapshot(options.signal, () => {
      const revision = this.#readRevision();
      if (since !== undefined && since < revision - REMOVALS_KEPT) return undefined;
      const after = since ?? 0;
      return {
        revision,
        intents: this.intents.since(after),
        machines: this.machines.since(after),
        drains: this.drains.since(after),
        pools: this.pools.since(after),
        removed: since === undefined ? [] : this.#removedSince(since),
      };
    });
  }

  async identity({ id, clusterUid }: StoreIdentity = {}): Promise<StoreIdentity> {
    const known = await this.#connection.read(undefined, () => this.#readIdentity());
    const isComplete = (one: StoreIdentity) =>
      (id === undefined || one.id !== undefined) &&
      (clusterUid === undefined || one.clusterUid !== undefined);
    if (isComplete(known)) return known;
    const { identity, isNew } = await this.#connection.write(undefined, () => {
      const stored = this.#readIdentity();
      if (isComplete(stored)) return { identity: stored, isNew: false };
      this.#setIdentity.run(stored.id ?? id ?? null, stored.clusterUid ?? clusterUid ?? null);
      return { identity: this.#readIdentity(), isNew: true };
    });
    if (isNew) {
      this.#onWrite({ target: 'installation', action: 'create', key: identity.id ?? '' });
    }
    return identity;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #readRevision(): number {
    const revision = this.#installation.first()?.['revision'];
    if (typeof revision === 'number') return revision;
    throw databaseCorrupt(this.#connection.path, 'table installation has no row');
  }

  #readIdentity(): StoreIdentity {
    const { id, cluster_uid: clusterUid } = this.#installation.first() ?? {};
    return {
      ...(typeof id === 'string' && { id }),
      ...(typeof clusterUid === 'string' && { clusterUid }),
    };
  }

  #removedSince(since: number): StoreChanges['removed'] {
    return this.#removals
      .all(since)
      .map(({ collection, key }) => ({ collection: String(collection), key: String(key) }));
  }

  #collection<N extends CollectionName>(table: N): SqliteCollection<N> {
    return new SqliteCollection(this.#connection, {
      table,
      assertHeld: (fence) => this.leases.assertHeld(fence),
      onWrite: this.#onWrite,
    });
  }
}

const SUBJECTS = ['pool', 'machine', 'node'] as const;
const DEFAULT_LIMIT = 1000;

class SqliteJournal implements Journal {
  readonly #connection: DatabaseConnection;
  readonly #onWrite: StoreObserver;
  readonly #insert: Statement;
  readonly #prune: Statement;
  /** One statement per set of filters: a condition that is always present would prevent the use of an index. */
  readonly #selects = new Map<string, Statement>();

  constructor(connection: DatabaseConnection, onWrite: StoreObserver) {
    this.#connection = connection;
    this.#onWrite = onWrite;
    this.#insert = connection.prepare(
      `INSERT INTO journal (at, pool, machine, node, value) VALUES (?, ?, ?, ?, ?)
       RETURNING sequence`,
    );
    this.#prune = connection.prepare(
      `DELETE FROM journal WHERE at < ?
       OR sequence NOT IN (SELECT sequence FROM journal ORDER BY sequence DESC LIMIT ?)`,
    );
  }

  async append(entry: JournalEntry): Promise<JournalRecord> {
    const record = await this.#connection.write(undefined, () => {
      const value = encodeRecord(JOURNAL_VALIDATOR, entry, 'a journal entry');
      const { pool = null, machine = null, node = null } = entry.subject;
      const sequence = this.#insert.first(entry.at, pool, machine, node, value)?.['sequence'];
      return this.#record({ sequence, value });
    });
    this.#onWrite({ target: 'journal', action: 'append', key: String(record.sequence) });
    return record;
  }

  read(query: JournalQuery = {}): Promise<readonly JournalRecord[]> {
    const { after = 0, limit = DEFAULT_LIMIT, signal } = query;
    const filters = SUBJECTS.filter((subject) => query[subject] !== undefined);
    return this.#connection.read(signal, () =>
      this.#select(filters)
        .all(after, ...filters.map((subject) => query[subject] ?? null), rowCount(limit))
        .map((row) => this.#record(row))
        .toReversed(),
    );
  }

  async prune(rule: { readonly beforeMs: number; readonly keep: number }): Promise<number> {
    const { beforeMs, keep } = rule;
    const pruned = await this.#connection.write(undefined, () =>
      this.#prune.run(beforeMs, rowCount(keep)),
    );
    if (pruned > 0) this.#onWrite({ target: 'journal', action: 'prune', key: String(pruned) });
    return pruned;
  }

  #select(subjects: readonly string[]): Statement {
    const name = subjects.join();
    const known = this.#selects.get(name);
    if (known !== undefined) return known;
    const conditions = ['sequence > ?', ...subjects.map((subject) => `${subject} = ?`)];
    const statement = this.#connection.prepare(
      `SELECT sequence, value FROM journal WHERE ${conditions.join(' AND ')}
       ORDER BY sequence DESC LIMIT ?`,
    );
    this.#selects.set(name, statement);
    return statement;
  }

  #record({ sequence, value }: Row): JournalRecord {
    if (typeof sequence !== 'number' || typeof value !== 'string') {
      throw this.#corruptRow(sequence, 'a column has the wrong type');
    }
    const parsed = decodeRecord(JOURNAL_VALIDATOR, value);
    if (!parsed.ok) throw this.#corruptRow(sequence, parsed.problem);
    return Object.freeze({ ...parsed.value, sequence });
  }

  #corruptRow(sequence: unknown, problem: string): Error {
    return databaseCorrupt(
      this.#connection.path,
      `table journal, key ${String(sequence)}: ${problem}`,
    );
  }
}

/** Converts a caller's limit, possibly infinite, to an integer for SQLite. */
function rowCount(count: number): number {
  return count > 0 ? Math.floor(Math.min(count, Number.MAX_SAFE_INTEGER)) : 0;
}

/** Leases as rows. A row is never deleted, because the next token is based on its token. */
class SqliteLeases implements StoreLeases {
  readonly #connection: DatabaseConnection;
  readonly #onWrite: StoreObserver;
  readonly #select: Statement;
  readonly #upsert: Statement;

  constructor(connection: DatabaseConnection, onWrite: StoreObserver) {
    this.#connection = connection;
    this.#onWrite = onWrite;
    this.#select = connection.prepare(
      'SELECT name, holder, token, expires_at, released_at FROM leases WHERE name = ?',
    );
    this.#upsert = connection.prepare(
      `INSERT INTO leases (name, holder, token, expires_at, released_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (name) DO UPDATE SET
         holder = excluded.holder, token = excluded.token, expires_at = excluded.expires_at,
         released_at = excluded.released_at`,
    );
  }

  async acquire(request: LeaseRequest, options: ReadOptions = {}): Promise<Lease> {
    const lease = await this.#connection.write(options.signal, () => this.#acquire(request));
    this.#onWrite({ target: 'leases', action: 'acquire', key: lease.name });
    return lease;
  }

  async renew(lease: Lease, durationMs: number, options: ReadOptions = {}): Promise<Lease> {
    const renewed = await this.#connection.write(options.signal, () => {
      this.assertHeld(lease);
      return this.#put({ ...lease, expiresAt: leaseExpiry(this.#connection.now(), durationMs) });
    });
    this.#onWrite({ target: 'leases', action: 'renew', key: lease.name });
    return renewed;
  }

  async release(lease: Lease): Promise<void> {
    const released = await this.#connection.write(undefined, () => {
      const current = this.#current(lease);
      if (current === undefined || current.expiresAt === 0) return false;
      // Zero instead of now: a wall clock that is set back must not revive a released lease.
      const releasedAt = Math.min(this.#connection.now(), current.expiresAt);
      this.#put({ ...current, expiresAt: 0, releasedAt });
      return true;
    });
    if (released) this.#onWrite({ target: 'leases', action: 'release', key: lease.name });
  }

  read(name: string, options: ReadOptions = {}): Promise<Lease | undefined> {
    return this.#connection.read(options.signal, () => this.#newest(name));
  }

  /**
   * Call it inside a transaction: no other process can acquire the lease between this check and the commit. Compares the
   * stored expiry, so a copy from before a renewal is valid.
   */
  assertHeld(lease: Lease): void {
    const current = this.#current(lease);
    if (current === undefined || !isLeaseValid(current, this.#connection.now())) {
      throw new LostLeadership(
        'LEASE_LOST',
        `${lease.holder} no longer holds lease ${lease.name}`,
        {
          facts: { name: lease.name, holder: lease.holder, token: lease.token },
        },
      );
    }
  }

  #acquire({ name, holder, durationMs, endedHolder }: LeaseRequest): Lease {
    const last = this.#newest(name);
    // Read under the lock: an earlier time could make a lease that was renewed meanwhile appear expired.
    const now = this.#connection.now();
    const isFree = last === undefined || last.holder === holder || last.holder === endedHolder;
    if (!isFree && isLeaseValid(last, now)) {
      throw new Conflict('LEASE_HELD', `lease ${name} is held by ${last.holder}`, {
        facts: { holder: last.holder, expiresAt: last.expiresAt },
      });
    }
    const token = (last?.token ?? 0) + 1;
    return this.#put({ name, holder, token, expiresAt: leaseExpiry(now, durationMs) });
  }

  #current(lease: Lease): Lease | undefined {
    const newest = this.#newest(lease.name);
    return newest?.token === lease.token && newest.holder === lease.holder ? newest : undefined;
  }

  #newest(name: string): Lease | undefined {
    const row = this.#select.first(name);
    return row && this.#lease(row);
  }

  #lease({ name, holder, token, expires_at: expiresAt, released_at: releasedAt }: Row): Lease {
    const isValid =
      typeof name === 'string' &&
      typeof holder === 'string' &&
      typeof token === 'number' &&
      typeof expiresAt === 'number' &&
      (releasedAt === null || typeof releasedAt === 'number');
    if (!isValid)
      throw databaseCorrupt(
        this.#connection.path,
        `table leases, name ${String(name)}: a column has the wrong type`,
      );
    const lease = { name, holder, token, expiresAt };
    return Object.freeze(releasedAt === null ? lease : { ...lease, releasedAt });
  }

  #put(lease: Lease): Lease {
    const { name, holder, token, expiresAt, releasedAt } = lease;
    this.#upsert.run(name, holder, token, expiresAt, releasedAt ?? null);
    return Object.freeze({ ...lease });
  }
}
