// SPDX-License-Identifier: Apache-2.0

/** Those who wait for something to happen, or for their patience to end. */
export class Waiters {
  readonly #waiting = new Set<() => void>();

  /** Until `wakeAll` or the signal, whichever comes first; who waits looks for itself which of them it was. */
  wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal?.addEventListener('abort', wake, { once: true });
    });
  }

  wakeAll(): void {
    for (const wake of this.#waiting) wake();
  }
}
