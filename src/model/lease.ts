// SPDX-License-Identifier: Apache-2.0
// A lease makes one process the driver. Each time it passes to another holder its token grows, and every
// write of the driver names the token: a holder that slept through the end of its lease cannot write any more.

/** Whoever holds this one drives all open intents. */
export const RECONCILE_LEASE = 'reconcile';

/** Long enough for a garbage collection or a slow disk, short enough that a dead driver is not missed. */
export const RECONCILE_LEASE_MS = 15_000;
export const RECONCILE_RENEW_MS = 5_000;

/** No lease is given for longer. One that claims to last longer was written by a clock that was set back since. */
export const LONGEST_LEASE_MS = 3_600_000;

export interface Lease {
  readonly name: string;
  /** Unique per process start; host name and process id are in it for people to read. */
  readonly holder: string;
  /** Grows by one whenever the lease passes to another holder, also from a holder to its own successor. */
  readonly token: number;
  /** Wall clock. At this instant, and later, the lease is free for anyone. */
  readonly expiresAt: number;
}

/**
 * Whether it is still its holder's. A machine may start with its clock years ahead and set it right later; what
 * was leased before must not block everybody for years.
 */
export function isCurrent({ expiresAt }: Lease, now: number): boolean {
  return now < expiresAt && expiresAt - now <= LONGEST_LEASE_MS;
}

export function leaseExpiry(now: number, durationMs: number): number {
  return now + Math.min(durationMs, LONGEST_LEASE_MS);
}
