// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../../model/lease.ts';
import type { Clock } from '../../ports/clock.ts';
import type { RequestEnd, RequestFence, WriteFence } from '../../ports/fence.ts';

/** The right to act, for as long as it lasts. */
export interface WriteAuthority extends WriteFence {
  readonly lease: Lease;
  readonly signal?: AbortSignal | undefined;
  /** How old a view may be to be used once more; absent = none is. */
  readonly viewAgeMs?: number;
}

/** When a right ends by the wall clock and by the monotonic one, unless it is extended: whichever comes first. */
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

/** A right whose end can be told to somebody who cannot ask at the last instant. */
export interface DriverLease extends WriteFence {
  until(): Deadline;
}

/** Whoever drives in this process right now. Nobody: then nothing may be changed. */
export class DriverRegistry implements RequestFence {
  readonly #clock: Clock;
  #holder: WriteFence | undefined;
  #underWay = 0;
  #unsureAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
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

  beginRequest(): (end: RequestEnd) => void {
    this.#underWay += 1;
    return (end) => {
      this.#underWay -= 1;
      if (end === 'unsure') this.#unsureAt = this.#clock.monotonic();
    };
  }

  /** How long something that was sent may still take effect, where nothing does so after the longest request. */
  unsettledMs(longestRequestMs: number): number {
    if (this.#underWay > 0) return longestRequestMs;
    return Math.max(0, this.#unsureAt + longestRequestMs - this.#clock.monotonic());
  }
}
