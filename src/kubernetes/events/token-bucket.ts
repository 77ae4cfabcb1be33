// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';

interface TokenBucketOptions {
  readonly burst: number;
  readonly refillIntervalMs: number;
}

/** Allows a burst, then one token per interval. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #options: TokenBucketOptions;
  #tokens: number;
  #filledAt: number;

  constructor(clock: Clock, options: TokenBucketOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#tokens = options.burst;
    this.#filledAt = clock.monotonic();
  }

  take(): boolean {
    const now = this.#clock.monotonic();
    const refilled = (now - this.#filledAt) / this.#options.refillIntervalMs;
    this.#tokens = Math.min(this.#options.burst, this.#tokens + refilled);
    this.#filledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
