// SPDX-License-Identifier: Apache-2.0
import { Cancelled } from '../ports/errors.ts';

interface Waiter {
  readonly admit: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Runs at most `limit` functions concurrently and queues the rest in FIFO order. A Proxmox host serves its API and its web
 * interface with three workers, each busy with one request at a time; more requests would only make both slow.
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
        this.#waiters.delete(waiter);
        reject(cancelledWhileQueued());
      };
      const waiter: Waiter = {
        admit: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
        reject: (error) => {
          signal?.removeEventListener('abort', onAbort);
          reject(error);
        },
      };
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Rejects all queued callers; functions that already run continue. */
  rejectWaiters(error: Error): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter.reject(error);
  }

  /** Passes the slot directly to the first waiter, so that a new caller cannot overtake the queue. */
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
  return new Cancelled('CANCELLED', 'the caller aborted the request while it was queued', {
    facts: { requestSent: false },
  });
}
