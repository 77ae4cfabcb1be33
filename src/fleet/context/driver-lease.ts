// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../../model/lease.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DriverLock } from '../../ports/driver-lock.ts';
import type { RequestFence, RequestOutcome, WriteFence } from '../../ports/write-fence.ts';

/** What a pass needs to change something: the lease as fence of its writes, and whether it still holds. */
export interface WriteAuthority extends WriteFence {
  readonly lease: Lease;
  readonly signal?: AbortSignal | undefined;
  /** Views that are younger than this may be used again; absent: every pass reads new ones. */
  readonly viewAgeMs?: number;
}

/** The end of a lease on the wall clock and on the monotonic clock, whichever comes first. */
export interface Deadline {
  readonly wall: number;
  readonly monotonic: number;
}

export const NEVER: Deadline = {
  wall: Number.POSITIVE_INFINITY,
  monotonic: Number.POSITIVE_INFINITY,
};

export const PAST: Deadline = {
  wall: Number.NEGATIVE_INFINITY,
  monotonic: Number.NEGATIVE_INFINITY,
};

export function isBefore(
  { wall, monotonic }: Deadline,
  clock: Pick<Clock, 'now' | 'monotonic'>,
): boolean {
  return clock.now() < wall && clock.monotonic() < monotonic;
}

/** A held lease whose end is known in advance. */
export interface DriverLease extends WriteFence {
  /** The lease of the store, as last renewed; absent for other leases. */
  readonly lease?: Lease;
  until(): Deadline;
}

/** The lease that this process holds now. Without one, nothing may be changed. */
export class DriverRegistry implements RequestFence {
  readonly #clock: Clock;
  #holder: WriteFence | undefined;
  #requestsInProgress = 0;
  #unsureAt = Number.NEGATIVE_INFINITY;

  /** Tells a successor that this process has ended, and which of its requests may still take effect. */
  readonly lock: DriverLock | undefined;

  constructor(clock: Clock, lock?: DriverLock) {
    this.#clock = clock;
    this.lock = lock;
  }

  mayAct(): boolean {
    return this.#holder?.mayAct() ?? false;
  }

  begin(holder: WriteFence): void {
    this.#holder = holder;
  }

  end(holder: WriteFence): void {
    if (this.#holder === holder) this.#holder = undefined;
  }

  beginRequest(): (end: RequestOutcome) => void {
    this.#requestsInProgress += 1;
    this.#recordUnsettled();
    return (end) => {
      this.#requestsInProgress -= 1;
      if (end === 'unknown') this.#unsureAt = this.#clock.monotonic();
      this.#recordUnsettled();
    };
  }

  /** Names the holder of the lock, if this process has it and has not done so yet. */
  claimLock(holder: string): void {
    if (this.lock?.tryLock() !== true || this.lock.holder() === holder) return;
    this.lock.claim(holder);
    this.#recordUnsettled();
  }

  /** While several requests are in progress, the time of the latest event covers all of them. */
  #recordUnsettled(): void {
    const ageMs = this.#requestsInProgress > 0 ? 0 : this.#clock.monotonic() - this.#unsureAt;
    this.lock?.recordUnsettled(Number.isFinite(ageMs) ? ageMs : undefined);
  }

  /** How long a request that was sent may still take effect, if none does after `maxRequestMs`. */
  unsettledMs(maxRequestMs: number): number {
    if (this.#requestsInProgress > 0) return maxRequestMs;
    return Math.max(0, this.#unsureAt + maxRequestMs - this.#clock.monotonic());
  }
}
