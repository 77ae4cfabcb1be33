// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { Cancelled } from '../ports/errors.ts';

/** Node's timers count in 32 bits; a longer delay would fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancelled = () => reject(new Cancelled('CANCELLED', 'the wait was cancelled'));
    if (signal?.aborted === true) return cancelled();
    const onAbort = () => {
      clearTimeout(timer);
      cancelled();
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

export const systemClock: Clock = {
  now: () => Date.now(),
  // Equal in all threads of the process, unlike performance.now(): threads exchange these times.
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
  async sleep(ms, options = {}) {
    let left = Number.isNaN(ms) ? 0 : ms;
    do {
      const part = Math.min(Math.max(left, 0), MAX_TIMER_MS);
      await wait(part, options.signal);
      left -= part;
    } while (left > 0);
  },
};
