// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';

interface Entry {
  /** The wall clock time that the records have. */
  since: number;
  /** What had elapsed when this driver saw it first. */
  readonly carriedMs: number;
  /** On the monotonic clock. */
  readonly seenAt: number;
}

/** A difference that is no change of the wall clock. */
const TOLERANCE_MS = 5_000;

/**
 * How long a driver has been waiting for something. Time without a driver does not count, and a change of the wall clock
 * has no effect: a timeout must not end a machine that was only not looked at.
 */
export class DriverTime {
  readonly #previousEndedAt: number;
  readonly #entries = new Map<string, Entry>();

  /** `previousEndedAt`: wall clock of the last sign of the driver before this one. */
  constructor(previousEndedAt: number) {
    this.#previousEndedAt = previousEndedAt;
  }

  elapsedMs(key: string, since: number, clock: Clock): number {
    let entry = this.#entries.get(key);
    if (entry?.since !== since) {
      const until = Math.min(clock.now(), this.#previousEndedAt);
      entry = { since, carriedMs: Math.max(0, until - since), seenAt: clock.monotonic() };
      this.#entries.set(key, entry);
    }
    return entry.carriedMs + clock.monotonic() - entry.seenAt;
  }

  /** The time to record instead of `since`, so that the next driver counts as this one; undefined when it is right. */
  corrected(key: string, since: number, clock: Clock): number | undefined {
    const entry = this.#entries.get(key);
    if (entry?.since !== since) return undefined;
    const corrected = clock.now() - this.elapsedMs(key, since, clock);
    return Math.abs(corrected - since) <= TOLERANCE_MS ? undefined : corrected;
  }

  /** After `corrected` was recorded: what has elapsed stays the same. */
  replaceSince(key: string, since: number): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) entry.since = since;
  }

  forget(key: string): void {
    this.#entries.delete(key);
  }
}
