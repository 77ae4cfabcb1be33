// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';

const BEAT_MS = 5_000;
const MISSED_BEATS = 3;

/**
 * Notices that the process was stopped (a signal, a suspended machine): its own regular beats are missing. What
 * waits in its sockets then is old, however new it looks.
 */
export class Frozen {
  readonly #clock: Clock;
  #beatAt: number;
  #wallBeatAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#beatAt = clock.monotonic();
    this.#wallBeatAt = clock.now();
  }

  /** The wall clock is asked too: the other one stands still while a machine is suspended. */
  get sinceLong(): boolean {
    const limitMs = BEAT_MS * MISSED_BEATS;
    return (
      this.#clock.monotonic() - this.#beatAt > limitMs ||
      this.#clock.now() - this.#wallBeatAt > limitMs
    );
  }

  /** Until the signal; `onThaw` is called when it goes on after it was stopped. */
  async watch(signal: AbortSignal, onThaw: () => void): Promise<void> {
    while (!signal.aborted) {
      if (this.sinceLong) onThaw();
      this.#beatAt = this.#clock.monotonic();
      this.#wallBeatAt = this.#clock.now();
      await this.#clock.sleep(BEAT_MS, { signal }).catch(() => undefined);
    }
  }
}
