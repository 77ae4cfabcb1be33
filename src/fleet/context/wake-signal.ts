// SPDX-License-Identifier: Apache-2.0

/** Wakes whoever waits for news; rung while nobody waits, it is heard by who comes next. */
export class WakeSignal {
  #rung = new AbortController();

  /** Aborts when it is rung. */
  get signal(): AbortSignal {
    return this.#rung.signal;
  }

  wake(): void {
    this.#rung.abort('rung');
  }

  /** It was heard: who waits from now on waits for the next time. */
  reset(): void {
    if (this.#rung.signal.aborted) this.#rung = new AbortController();
  }
}
