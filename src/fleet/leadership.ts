// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';
import type { Clock } from '../ports/clock.ts';
import type { Fence } from '../ports/fence.ts';

/** The right to act, for as long as it lasts. */
export interface Leadership extends Fence {
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
export interface Tenure extends Fence {
  until(): Deadline;
}

/** Whoever drives in this process right now. Nobody: then nothing may be changed. */
export class Throne implements Fence {
  #holder: Fence | undefined;

  mayAct(): boolean {
    return this.#holder?.mayAct() ?? false;
  }

  take(holder: Fence): void {
    this.#holder = holder;
  }

  leave(holder: Fence): void {
    if (this.#holder === holder) this.#holder = undefined;
  }
}
