// SPDX-License-Identifier: Apache-2.0
// The time of one site: the simulator's, and that of every process that works on it.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../src/ports/clock.ts';

/** So much faster than the clock on the wall. More, and a busy machine looks like a broken network. */
export const SPEED = 20;
export const EPOCH = Date.now();

export class FastClock implements Clock {
  /** How far this site is ahead of the others. */
  aheadMs = 0;

  now(): number {
    return Math.round(EPOCH + this.aheadMs + (Date.now() - EPOCH) * SPEED);
  }

  monotonic(): number {
    return performance.now() * SPEED;
  }

  async sleep(ms: number, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await sleep(ms / SPEED, undefined, { signal });
  }
}
