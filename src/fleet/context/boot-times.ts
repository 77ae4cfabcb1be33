// SPDX-License-Identifier: Apache-2.0
// When to query for the first time whether a guest is up. A query to a guest that is still booting takes seconds and holds
// a worker of its host; guests of one pool boot in about the same time.

/** Interval between two queries, and its growth with the time since the start. */
const MIN_INTERVAL_MS = 1_500;
const INTERVAL_SHARE = 0.05;
/** Share of the learned boot time after which the first query is worth its cost. */
const FIRST_QUERY = 0.95;
const EWMA_WEIGHT = 0.2;

/** Learned boot times of one process, by pool. Losing them costs a few queries. */
export class BootTimes {
  readonly #bootMs = new Map<string, number>();

  /** Time until the next query of a guest that started `sinceStartMs` ago. */
  nextQueryMs(pool: string, sinceStartMs: number): number {
    const firstMs = FIRST_QUERY * (this.#bootMs.get(pool) ?? 0);
    if (sinceStartMs < firstMs) return firstMs - sinceStartMs;
    return Math.max(MIN_INTERVAL_MS, INTERVAL_SHARE * sinceStartMs);
  }

  /** Whether a guest can be up by now. */
  isDue(pool: string, sinceStartMs: number): boolean {
    return sinceStartMs >= FIRST_QUERY * (this.#bootMs.get(pool) ?? 0);
  }

  /** A boot faster than the learned one replaces it at once, so that the first query is never late for long. */
  booted(pool: string, bootMs: number): void {
    const usualMs = this.#bootMs.get(pool) ?? bootMs;
    this.#bootMs.set(pool, Math.min(bootMs, usualMs + EWMA_WEIGHT * (bootMs - usualMs)));
  }
}
