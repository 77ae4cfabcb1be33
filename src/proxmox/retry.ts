// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';

export interface RetryOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal?: AbortSignal | undefined;
  /** Includes the first attempt. */
  readonly maxAttempts: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  isTransient(error: unknown): boolean;
}

/**
 * Retries transient errors. The backoff doubles each time, with jitter over its upper half: callers that failed together
 * retry at different times, and none retries immediately.
 */
export async function retryWithBackoff<T>(
  work: () => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  let backoffMs = options.initialBackoffMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= options.maxAttempts || !options.isTransient(error)) throw error;
    }
    await options.clock.sleep((backoffMs * (1 + options.random.fraction())) / 2, {
      signal: options.signal,
    });
    backoffMs = Math.min(backoffMs * 2, options.maxBackoffMs);
  }
}
