// SPDX-License-Identifier: Apache-2.0
// When to poll tasks of Proxmox and booting guests.
//
// Tasks of one kind in one pool take about as long as the last ones did: a task
// is polled rarely until it can have ended, and often from then on, because the next step waits for it.

/** Share of the shortest recent duration after which a task may have ended. */
const EARLIEST_END = 0.95;
/** Weight of a new, longer duration in the learned one; a shorter duration replaces it at once. */
const EWMA_WEIGHT = 0.2;
/** Interval between two polls of a task that may have ended, as a share of its age. */
const INTERVAL_SHARE = 0.05;
const MIN_INTERVAL_MS = 100;
const MAX_INTERVAL_MS = 500;
/** A task that fails does so early: poll a long task once after this time, then each time it is a fifth older. */
const EARLY_POLL_MS = 5_000;
const EARLY_INTERVAL_SHARE = 0.2;

/** Learned durations of one process. Losing them costs a few requests. */
export class TaskPolling {
  readonly #durationsMs = new Map<string, number>();

  /** Time until the next poll of a task of this kind and age. */
  nextPollMs(kind: string, ageMs: number): number {
    const usualMs = this.#durationsMs.get(kind);
    if (usualMs === undefined) return MAX_INTERVAL_MS;
    const earliestEndMs = EARLIEST_END * usualMs;
    if (ageMs >= earliestEndMs) {
      return Math.min(Math.max(INTERVAL_SHARE * ageMs, MIN_INTERVAL_MS), MAX_INTERVAL_MS);
    }
    const earlyMs = ageMs < EARLY_POLL_MS ? EARLY_POLL_MS - ageMs : EARLY_INTERVAL_SHARE * ageMs;
    return Math.max(MIN_INTERVAL_MS, Math.min(earliestEndMs - ageMs, earlyMs));
  }

  /** `tookMs`: age of the task at the poll that found its end. */
  ended(kind: string, tookMs: number): void {
    const usualMs = this.#durationsMs.get(kind) ?? tookMs;
    this.#durationsMs.set(kind, Math.min(tookMs, usualMs + EWMA_WEIGHT * (tookMs - usualMs)));
  }
}

// When to query for the first time whether a guest is up. A query to a guest that is still booting takes seconds and holds
// a worker of its host; guests of one pool boot in about the same time.

/** Interval between two queries, and its growth with the time since the start. */
const MIN_QUERY_INTERVAL_MS = 1_500;
const QUERY_INTERVAL_SHARE = 0.05;
/** Share of the learned boot time after which the first query is worth its cost. */
const FIRST_QUERY = 0.95;

/** Learned boot times of one process, by pool. Losing them costs a few queries. */
export class BootTimes {
  readonly #bootMs = new Map<string, number>();

  /** Time until the next query of a guest that started `sinceStartMs` ago. */
  nextQueryMs(pool: string, sinceStartMs: number): number {
    const firstMs = FIRST_QUERY * (this.#bootMs.get(pool) ?? 0);
    if (sinceStartMs < firstMs) return firstMs - sinceStartMs;
    return Math.max(MIN_QUERY_INTERVAL_MS, QUERY_INTERVAL_SHARE * sinceStartMs);
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
