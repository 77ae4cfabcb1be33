// SPDX-License-Identifier: Apache-2.0
// The clock of one site: of the simulator and of every process on it. It runs faster than real time.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../src/ports/clock.ts';

/** Factor over real time. A larger factor makes a busy test machine cause request timeouts. */
export const SPEED = 20;
export const EPOCH = Date.now();

export class FastClock implements Clock {
  /** How far this site is ahead of the other sites. */
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
