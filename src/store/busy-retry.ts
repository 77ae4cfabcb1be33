// SPDX-License-Identifier: Apache-2.0
import { Backoff } from '../ports/backoff.ts';
import type { Clock } from '../ports/clock.ts';
import { StoreUnusable } from '../ports/errors.ts';
import { throwIfAborted } from '../ports/in-flight-calls.ts';
import type { Random } from '../ports/random.ts';
import { isBusy, translateSqliteError } from './store-errors.ts';

const BACKOFF = { firstMs: 5, maxMs: 200 } as const;

export interface BusyRetryOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly random: Pick<Random, 'fraction'>;
  /** How long another process may hold the lock before a call rejects with STORE_BUSY. */
  readonly busyTimeoutMs: number;
}

/**
 * Repeats an attempt while another process holds the lock. SQLite's own wait blocks the whole process, so it lasts only
 * a few milliseconds; the rest of the wait happens here without blocking.
 */
export async function retryWhileBusy<T>(
  { path, clock, random, busyTimeoutMs }: BusyRetryOptions,
  signal: AbortSignal | undefined,
  attempt: () => T,
): Promise<T> {
  const deadline = clock.monotonic() + busyTimeoutMs;
  const backoff = new Backoff({ clock, random, ...BACKOFF });
  for (;;) {
    throwIfAborted(signal);
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw translateSqliteError(error, path);
      if (clock.monotonic() >= deadline) {
        const message = `another process has held the database ${path} for ${busyTimeoutMs} ms`;
        throw new StoreUnusable('STORE_BUSY', message, { cause: error, facts: { path } });
      }
    }
    await backoff.sleep(signal);
  }
}
