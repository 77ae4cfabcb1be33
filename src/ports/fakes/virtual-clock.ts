// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../clock.ts';
import { Cancelled } from '../errors.ts';

interface Sleeper {
  readonly wakeAt: number;
  readonly order: number;
  readonly wake: () => void;
}

/**
 * Time that moves only in `advance`. Sleepers wake in the order of their times, ties in the order in which they began to
 * sleep. All work of a woken sleeper, further sleeps included, runs before the next one wakes, so runs are
 * deterministic.
 */
export class VirtualClock implements Clock {
  #now: number;
  readonly #start: number;
  /** Wall clock minus the internal time. */
  #wallOffset = 0;
  #order = 0;
  readonly #sleepers = new Set<Sleeper>();

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#now = startMs;
    this.#start = startMs;
  }

  now(): number {
    return this.#now + this.#wallOffset;
  }

  /** Sets the wall clock. Wakes no sleeper: sleeps use the monotonic clock. */
  setWallClock(ms: number): void {
    this.#wallOffset = ms - this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  /** Number of sleepers. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  sleep(ms: number, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      const cancelled = () => reject(new Cancelled('CANCELLED', 'the wait was cancelled'));
      if (signal?.aborted === true) return cancelled();
      if (!(ms > 0)) return resolve();
      const onAbort = () => {
        this.#sleepers.delete(sleeper);
        cancelled();
      };
      const sleeper: Sleeper = {
        wakeAt: this.#now + ms,
        order: this.#order++,
        wake: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Moves time forward and wakes each sleeper at its time. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await settle();
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.#now = Math.max(this.#now, next.wakeAt);
      this.#sleepers.delete(next);
      next.wake();
      await settle();
    }
    this.#now = until;
  }

  /** Moves time to the next sleeper's; false when there are no sleepers. */
  async advanceToNext(): Promise<boolean> {
    await settle();
    const next = this.#next(Number.POSITIVE_INFINITY);
    if (next === undefined) return false;
    await this.advance(Math.max(0, next.wakeAt - this.#now));
    return true;
  }

  #next(until: number): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const sleeper of this.#sleepers) {
      if (sleeper.wakeAt > until) continue;
      if (first === undefined || isBefore(sleeper, first)) first = sleeper;
    }
    return first;
  }
}

function isBefore(a: Sleeper, b: Sleeper): boolean {
  return a.wakeAt < b.wakeAt || (a.wakeAt === b.wakeAt && a.order < b.order);
}

/**
 * Runs everything that can run without time passing. All microtasks run before the next turn of the event loop; a few
 * turns also cover streams and file reads that are ready.
 */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    // oxlint-disable-next-line no-restricted-globals -- only here virtual time yields to real work
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
