// SPDX-License-Identifier: Apache-2.0
// A lease makes one process the driver. Its token grows whenever the lease gets another holder, and every write
// of the driver carries the token. A process whose lease expired while it was suspended therefore cannot write
// any more.

/** The process that holds this lease is the driver: it carries out all open intents. */
export const RECONCILE_LEASE = 'reconcile';

/** Longer than a garbage collection pause or a slow disk write, short enough to replace a dead driver soon. */
export const RECONCILE_LEASE_MS = 15_000;
export const RECONCILE_RENEW_MS = 5_000;

/** No lease lasts longer. A lease with a later expiry was written before the clock was set back. */
export const MAX_LEASE_MS = 3_600_000;

export interface Lease {
  readonly name: string;
  /** Unique per process start; contains host name and process id for people to read. */
  readonly holder: string;
  /** Grows by one whenever the lease gets another holder, also when the same holder acquires it again. */
  readonly token: number;
  /** Wall clock. From this instant on any process may acquire the lease. */
  readonly expiresAt: number;
  /** Wall clock, if its holder released it, at most its expiry; `expiresAt` is then zero. */
  readonly releasedAt?: number;
}

/**
 * Whether the holder still holds the lease. A host may boot with its clock years ahead and correct it later: a
 * lease written before the correction must not block other processes for years.
 */
export function isLeaseValid({ expiresAt }: Lease, now: number): boolean {
  return now < expiresAt && expiresAt - now <= MAX_LEASE_MS;
}

export function leaseExpiry(now: number, durationMs: number): number {
  return now + Math.min(durationMs, MAX_LEASE_MS);
}
