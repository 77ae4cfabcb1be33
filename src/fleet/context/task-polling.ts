// SPDX-License-Identifier: Apache-2.0
// When to poll the status of a Proxmox task. Tasks of one kind in one pool take about as long as the last ones did: a task
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
