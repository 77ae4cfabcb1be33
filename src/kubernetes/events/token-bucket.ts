// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';

export interface BucketOptions {
  readonly burst: number;
  readonly everyMs: number;
}

/** So many at once, then one per interval. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #options: BucketOptions;
  #tokens: number;
  #filledAt: number;

  constructor(clock: Clock, options: BucketOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#tokens = options.burst;
    this.#filledAt = clock.monotonic();
  }

  take(): boolean {
    const now = this.#clock.monotonic();
    const gained = (now - this.#filledAt) / this.#options.everyMs;
    this.#tokens = Math.min(this.#options.burst, this.#tokens + gained);
    this.#filledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
