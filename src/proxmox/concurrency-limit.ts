// SPDX-License-Identifier: Apache-2.0
import { Cancelled } from '../ports/errors.ts';

interface Waiter {
  readonly admit: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * At most so many at once, the rest in the order they came. A Proxmox host answers with three workers, each
 * busy with one call at a time: more of ours at once would only make the web interface of its people slow.
 */
export class ConcurrencyLimit {
  readonly #limit: number;
  #active = 0;
  readonly #waiters = new Set<Waiter>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get active(): number {
    return this.#active;
  }

  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#acquire(signal);
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  #acquire(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) return Promise.reject(cancelledWhileQueued());
    if (this.#active < this.#limit) {
      this.#active += 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiters.delete(waiting);
        reject(cancelledWhileQueued());
      };
      const waiting: Waiter = {
        admit: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
        reject: (error) => {
          signal?.removeEventListener('abort', onAbort);
          reject(error);
        },
      };
      this.#waiters.add(waiting);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Sends away all who wait; those inside are left to themselves. */
  rejectWaiters(error: Error): void {
    const waiting = [...this.#waiters];
    this.#waiters.clear();
    for (const one of waiting) one.reject(error);
  }

  /** The place goes from hand to hand, so that nobody who comes late gets in between. */
  #release(): void {
    const [next] = this.#waiters;
    if (next === undefined) {
      this.#active -= 1;
      return;
    }
    this.#waiters.delete(next);
    next.admit();
  }
}

function cancelledWhileQueued(): Cancelled {
  return new Cancelled('CANCELLED', 'the request was called off while it waited for its turn', {
    facts: { requestSent: false },
  });
}
