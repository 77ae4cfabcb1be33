// SPDX-License-Identifier: Apache-2.0
import { Cancelled } from '../ports/errors.ts';

interface Waiting {
  readonly admit: () => void;
  readonly refuse: (error: Error) => void;
}

/**
 * At most so many at once, the rest in the order they came. A Proxmox host answers with three workers, each
 * busy with one call at a time: more of ours at once would only make the web interface of its people slow.
 */
export class Gate {
  readonly #limit: number;
  #inside = 0;
  readonly #waiting = new Set<Waiting>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get inside(): number {
    return this.#inside;
  }

  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#enter(signal);
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  #enter(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) return Promise.reject(cancelled());
    if (this.#inside < this.#limit) {
      this.#inside += 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(waiting);
        reject(cancelled());
      };
      const waiting: Waiting = {
        admit: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
        refuse: (error) => {
          signal?.removeEventListener('abort', onAbort);
          reject(error);
        },
      };
      this.#waiting.add(waiting);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Sends away all who wait; those inside are left to themselves. */
  turnAway(error: Error): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const one of waiting) one.refuse(error);
  }

  /** The place goes from hand to hand, so that nobody who comes late gets in between. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#inside -= 1;
      return;
    }
    this.#waiting.delete(next);
    next.admit();
  }
}

function cancelled(): Cancelled {
  return new Cancelled('CANCELLED', 'the request was called off while it waited for its turn', {
    facts: { requestSent: false },
  });
}
