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
/** The first query moves earlier by this factor with each boot, until one comes too early. */
const EARLIER = 0.97;
/** Distance of the first query from the latest one that came too early. */
const MARGIN = 1.06;
/** How fast a query that came too early is forgotten, with each boot of the pool. */
const FORGET = 0.9995;
/** A guest that boots slowly or not at all delays the first query of the others by no more than this. */
const MAX_DELAY = 1.1;

interface BootTime {
  /** Time of the first query, since the start. */
  readonly firstMs: number;
  /** The latest query that a guest did not answer. */
  readonly tooEarlyMs: number;
  /** The shortest boot so far. */
  readonly bootMs: number;
}

/**
 * Learns by pool when to query first: a query that comes too early costs seconds, so the time moves down in small steps
 * until one does, and then stays above it. Losing what was learned costs a few queries.
 */
export class BootTimes {
  readonly #times = new Map<string, BootTime>();

  /** Time until the next query of a guest that started `sinceStartMs` ago. */
  nextQueryMs(pool: string, sinceStartMs: number): number {
    const firstMs = this.#times.get(pool)?.firstMs ?? 0;
    if (sinceStartMs < firstMs) return firstMs - sinceStartMs;
    return Math.max(MIN_QUERY_INTERVAL_MS, QUERY_INTERVAL_SHARE * sinceStartMs);
  }

  /** Whether a guest can be up by now. */
  isDue(pool: string, sinceStartMs: number): boolean {
    return sinceStartMs >= (this.#times.get(pool)?.firstMs ?? 0);
  }

  /** A guest did not answer a query that was sent `sinceStartMs` after its start. */
  notUp(pool: string, sinceStartMs: number): void {
    const known = this.#times.get(pool);
    if (known === undefined) return;
    const tooEarlyMs = Math.min(sinceStartMs, known.bootMs * MAX_DELAY);
    if (tooEarlyMs <= known.tooEarlyMs) return;
    const firstMs = Math.max(known.firstMs, tooEarlyMs * MARGIN);
    this.#times.set(pool, { ...known, tooEarlyMs, firstMs });
  }

  booted(pool: string, tookMs: number): void {
    const known = this.#times.get(pool) ?? { firstMs: tookMs, tooEarlyMs: 0, bootMs: tookMs };
    const tooEarlyMs = known.tooEarlyMs * FORGET;
    const firstMs = Math.max(known.firstMs * EARLIER, tooEarlyMs * MARGIN);
    this.#times.set(pool, { firstMs, tooEarlyMs, bootMs: Math.min(known.bootMs, tookMs) });
  }
}
