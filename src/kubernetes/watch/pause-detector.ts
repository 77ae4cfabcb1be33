// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';

const HEARTBEAT_MS = 5_000;
const MAX_MISSED_HEARTBEATS = 3;

/**
 * Detects that the whole process was paused (SIGSTOP, a suspended machine) by its missing heartbeats. Data that waits
 * in its sockets after a pause is old, even though it has just been read.
 */
export class PauseDetector {
  readonly #clock: Clock;
  #lastBeatMonotonic: number;
  #lastBeatWall: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastBeatMonotonic = clock.monotonic();
    this.#lastBeatWall = clock.now();
  }

  /** Compares both clocks: the monotonic clock stands still while a machine is suspended. */
  get wasPaused(): boolean {
    const limitMs = HEARTBEAT_MS * MAX_MISSED_HEARTBEATS;
    return (
      this.#clock.monotonic() - this.#lastBeatMonotonic > limitMs ||
      this.#clock.now() - this.#lastBeatWall > limitMs
    );
  }

  /** Runs until the signal aborts; calls `onResume` after each pause. */
  async run(signal: AbortSignal, onResume: () => void): Promise<void> {
    while (!signal.aborted) {
      if (this.wasPaused) onResume();
      this.#lastBeatMonotonic = this.#clock.monotonic();
      this.#lastBeatWall = this.#clock.now();
      await this.#clock.sleep(HEARTBEAT_MS, { signal }).catch(() => undefined);
    }
  }
}
