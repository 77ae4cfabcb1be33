// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';

export interface RetryOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal?: AbortSignal | undefined;
  /** The first try included. */
  readonly attempts: number;
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  isPassing(error: unknown): boolean;
}

/**
 * Tries again what failed in passing. The pause doubles each time and is drawn from its upper half: callers
 * that failed together do not come back together, and none comes back at once.
 */
export async function retrying<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  let pauseMs = options.firstPauseMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= options.attempts || !options.isPassing(error)) throw error;
    }
    await options.clock.sleep((pauseMs * (1 + options.random.fraction())) / 2, {
      signal: options.signal,
    });
    pauseMs = Math.min(pauseMs * 2, options.longestPauseMs);
  }
}
