// SPDX-License-Identifier: Apache-2.0

/** Ends a wait early. A wake-up without a waiter is kept for the next wait, until `reset`. */
export class WakeSignal {
  #controller = new AbortController();

  /** Aborted after `wake`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  wake(): void {
    this.#controller.abort('wake');
  }

  /** Later waits wait for the next wake-up. */
  reset(): void {
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
  }
}
