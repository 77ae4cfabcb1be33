// SPDX-License-Identifier: Apache-2.0
import { Cancelled } from './errors.ts';

/** Callers that wait for a condition; the owner calls `wakeAll` after each change that may fulfil one. */
export class WaitQueue {
  readonly #waiting = new Set<() => void>();
  #isClosed = false;

  /** Rejects with Cancelled when the signal aborts or the queue is closed, whether or not the condition holds. */
  async waitUntil(condition: () => boolean, signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      if (this.#isClosed || signal?.aborted === true) {
        throw new Cancelled('CANCELLED', 'the wait was cancelled');
      }
      if (condition()) return;
      await this.#wait(signal);
    }
  }

  wakeAll(): void {
    for (const wake of this.#waiting) wake();
  }

  close(): void {
    this.#isClosed = true;
    this.wakeAll();
  }

  /** Resolves on `wakeAll` or on abort; the caller checks which. */
  #wait(signal: AbortSignal | undefined): Promise<void> {
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
}
