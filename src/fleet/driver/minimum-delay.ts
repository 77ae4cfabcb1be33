// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';

/** An autoscaler reads all groups in its first loop and requests what pending pods need in that loop or the next. */
const AFTER_REFRESH_MS = 30_000;
const WITHOUT_REFRESH_MS = 60_000;

/**
 * Delays machines for the minimum of pools after a start. The Cluster Autoscaler 1.36 does not count machines that it did
 * not request itself, and would request them again for pending pods: it gets the time to request them first.
 */
export class MinimumDelay {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #startedAt: number | undefined;
  #refreshedAt: number | undefined;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** The autoscaler has called Refresh and got an answer. */
  recordRefresh(): void {
    this.#refreshedAt ??= this.#clock.monotonic();
  }

  /** Zero when it is over. The first call starts it: from then on the autoscaler gets answers. */
  remainingMs(): number {
    const now = this.#clock.monotonic();
    this.#startedAt ??= now;
    const withoutRefresh = this.#startedAt + WITHOUT_REFRESH_MS;
    const isTooLate = this.#refreshedAt === undefined || this.#refreshedAt > withoutRefresh;
    const endsAt = isTooLate ? withoutRefresh : (this.#refreshedAt ?? now) + AFTER_REFRESH_MS;
    return Math.max(0, endsAt - now);
  }
}
