// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../clock.ts';
import { Cancelled } from '../errors.ts';

interface Sleeper {
  readonly wakeAt: number;
  readonly order: number;
  readonly wake: () => void;
}

/**
 * Time that moves only when told to. Sleepers wake in the order of their instants (ties: in the order in
 * which they went to sleep), and what a sleeper does when it wakes, further sleeps included, happens before
 * the next one wakes: a run is the same every time.
 */
export class VirtualClock implements Clock {
  #now: number;
  readonly #start: number;
  /** How far the wall clock is off. */
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

  /** Somebody sets the wall clock. Nobody wakes: sleeping goes by the other one. */
  setWallClock(ms: number): void {
    this.#wallOffset = ms - this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  /** How many are asleep: zero means that nothing is waiting for time to pass. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  sleep(ms: number, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      const cancelled = () => reject(new Cancelled('CANCELLED', 'the wait was called off'));
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

  /** Moves time forward, waking each sleeper at its own instant. */
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

  /** Moves to the next instant at which somebody wakes; false when nobody sleeps. */
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
 * Lets everything that can run without time passing run to its end. Promises settle as microtasks, all of
 * which run before the event loop's next turn; a few turns also cover streams and file reads that are ready.
 */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    // oxlint-disable-next-line no-restricted-globals -- the one place where virtual time lets real work run
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
