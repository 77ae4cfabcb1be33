// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { StoreUnusable } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import { throwIfAborted } from '../ports/store-gate.ts';
import { fromSqlite, isBusy } from './store-errors.ts';

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 200;

export interface BusyRetry {
  readonly path: string;
  readonly clock: Clock;
  readonly random: Pick<Random, 'fraction'>;
  /** How long another process may hold the database before we say so. */
  readonly patienceMs: number;
}

/**
 * Repeats an attempt while another process holds the lock. SQLite's own waiting stops the whole process, so
 * it gets a few milliseconds only and the rest is waited here, where others can go on; with jitter, or
 * processes that collided once would meet again each time.
 */
export async function whileBusy<T>(
  { path, clock, random, patienceMs }: BusyRetry,
  signal: AbortSignal | undefined,
  attempt: () => T,
): Promise<T> {
  const until = clock.monotonic() + patienceMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    throwIfAborted(signal);
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw fromSqlite(error, path);
      if (clock.monotonic() >= until) {
        const message = `another process has held the database ${path} for ${patienceMs} ms`;
        throw new StoreUnusable('STORE_BUSY', message, { cause: error, facts: { path } });
      }
    }
    await clock.sleep(pause * (0.5 + random.fraction()), { signal });
  }
}
