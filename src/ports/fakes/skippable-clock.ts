// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../clock.ts';
import { Cancelled } from '../errors.ts';

interface Sleeper {
  readonly wakeAt: number;
  readonly wake: () => void;
}

/**
 * A real clock that tests can advance: for tests with real sockets and with leases that last longer than a test may.
 */
export class SkippableClock implements Clock {
  readonly #real: Clock;
  readonly #sleepers = new Set<Sleeper>();
  #skippedMs = 0;

  constructor(real: Clock) {
    this.#real = real;
  }

  now(): number {
    return this.#real.now() + this.#skippedMs;
  }

  monotonic(): number {
    return this.#real.monotonic() + this.#skippedMs;
  }

  sleep(ms: number, { signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    if (signal?.aborted === true) return Promise.reject(cancelled());
    if (!(ms > 0)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const done = new AbortController();
      const finish = (settle: () => void) => {
        done.abort();
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', onAbort);
        settle();
      };
      const onAbort = () => finish(() => reject(cancelled()));
      const sleeper = { wakeAt: this.monotonic() + ms, wake: () => finish(resolve) };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#real.sleep(ms, { signal: done.signal }).then(sleeper.wake, () => undefined);
    });
  }

  /** Wakes the sleepers that are due, in order. */
  skip(ms: number): void {
    this.#skippedMs += ms;
    const due = [...this.#sleepers].filter(({ wakeAt }) => wakeAt <= this.monotonic());
    for (const { wake } of due.sort((one, other) => one.wakeAt - other.wakeAt)) wake();
  }
}

function cancelled(): Cancelled {
  return new Cancelled('CANCELLED', 'the wait was cancelled');
}
