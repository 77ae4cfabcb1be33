// SPDX-License-Identifier: Apache-2.0
import { isCurrent, type Lease, leaseExpiry } from '../model/lease.ts';
import { Conflict, LostLeadership } from '../ports/errors.ts';
import type { LeaseRequest, Leases, ReadOptions } from '../ports/store.ts';
import type { StoreObserver } from '../ports/store-write.ts';
import type { Connection, Row, Statement } from './connection.ts';
import { corrupt } from './store-errors.ts';

/** Leases as rows. A row is never deleted: its token is what the next holder counts on from. */
export class SqliteLeases implements Leases {
  readonly #connection: Connection;
  readonly #onWrite: StoreObserver;
  readonly #select: Statement;
  readonly #upsert: Statement;

  constructor(connection: Connection, onWrite: StoreObserver) {
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
    const lease = await this.#connection.write(options.signal, () => this.#take(request));
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
      // Not "now": a wall clock that is set back must not bring a released lease to life again.
      this.#put({ ...current, expiresAt: 0 });
      return true;
    });
    if (released) this.#onWrite({ target: 'leases', action: 'release', key: lease.name });
  }

  read(name: string, options: ReadOptions = {}): Promise<Lease | undefined> {
    return this.#connection.read(options.signal, () => this.#newest(name));
  }

  /**
   * To be called inside a transaction: nobody can take the lease between this check and the commit, however
   * long the disk takes for it. The newest expiry counts, so a copy from before a renewal is as good.
   */
  assertHeld(lease: Lease): void {
    const current = this.#current(lease);
    if (current === undefined || !isCurrent(current, this.#connection.now())) {
      throw new LostLeadership('LEASE_LOST', `${lease.holder} no longer holds ${lease.name}`, {
        facts: { name: lease.name, holder: lease.holder, token: lease.token },
      });
    }
  }

  #take({ name, holder, durationMs }: LeaseRequest): Lease {
    const last = this.#newest(name);
    // Read under the lock: a time from before the wait for it would take a lease renewed meanwhile for expired.
    const now = this.#connection.now();
    if (last !== undefined && last.holder !== holder && isCurrent(last, now)) {
      throw new Conflict('LEASE_HELD', `${last.holder} holds the lease ${name}`, {
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
    const isSound =
      typeof name === 'string' &&
      typeof holder === 'string' &&
      typeof token === 'number' &&
      typeof expiresAt === 'number';
    if (!isSound) throw corrupt(this.#connection.path, `leases, row ${String(name)}`);
    return Object.freeze({ name, holder, token, expiresAt });
  }

  #put({ name, holder, token, expiresAt }: Lease): Lease {
    this.#upsert.run(name, holder, token, expiresAt);
    return Object.freeze({ name, holder, token, expiresAt });
  }
}
