// SPDX-License-Identifier: Apache-2.0
import { isLeaseValid, type Lease, leaseExpiry } from '../model/lease.ts';
import { Conflict, LostLeadership } from '../ports/errors.ts';
import type { LeaseRequest, ReadOptions, StoreLeases } from '../ports/store.ts';
import type { StoreObserver } from '../ports/store-write.ts';
import type { DatabaseConnection, Row, Statement } from './database-connection.ts';
import { databaseCorrupt } from './store-errors.ts';

/** Leases as rows. A row is never deleted, because the next token is based on its token. */
export class SqliteLeases implements StoreLeases {
  readonly #connection: DatabaseConnection;
  readonly #onWrite: StoreObserver;
  readonly #select: Statement;
  readonly #upsert: Statement;

  constructor(connection: DatabaseConnection, onWrite: StoreObserver) {
    this.#connection = connection;
    this.#onWrite = onWrite;
    this.#select = connection.prepare(
      'SELECT name, holder, token, expires_at FROM leases WHERE name = ?',
    );
    this.#upsert = connection.prepare(
      `INSERT INTO leases (name, holder, token, expires_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (name) DO UPDATE SET
         holder = excluded.holder, token = excluded.token, expires_at = excluded.expires_at`,
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
      this.#put({ ...current, expiresAt: 0 });
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

  #acquire({ name, holder, durationMs }: LeaseRequest): Lease {
    const last = this.#newest(name);
    // Read under the lock: an earlier time could make a lease that was renewed meanwhile appear expired.
    const now = this.#connection.now();
    if (last !== undefined && last.holder !== holder && isLeaseValid(last, now)) {
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

  #lease({ name, holder, token, expires_at: expiresAt }: Row): Lease {
    const isValid =
      typeof name === 'string' &&
      typeof holder === 'string' &&
      typeof token === 'number' &&
      typeof expiresAt === 'number';
    if (!isValid)
      throw databaseCorrupt(
        this.#connection.path,
        `table leases, name ${String(name)}: a column has the wrong type`,
      );
    return Object.freeze({ name, holder, token, expiresAt });
  }

  #put({ name, holder, token, expiresAt }: Lease): Lease {
    this.#upsert.run(name, holder, token, expiresAt);
    return Object.freeze({ name, holder, token, expiresAt });
  }
}
