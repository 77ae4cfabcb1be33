// SPDX-License-Identifier: Apache-2.0
import { Cancelled } from './errors.ts';

/**
 * The door of a store: lets calls in until it is closed, and closes only after those inside have left. What
 * is inside may still finish, since a write half way through a wait for a lock was promised to its caller.
 */
export class StoreGate {
  readonly #inside = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  async enter<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw new Cancelled('CANCELLED', 'the store is closed');
    throwIfAborted(signal);
    const call = work();
    this.#inside.add(call);
    try {
      return await call;
    } finally {
      this.#inside.delete(call);
    }
  }

  close(last: () => void): Promise<void> {
    this.#closing ??= Promise.allSettled(this.#inside).then(last);
    return this.#closing;
  }
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new Cancelled('CANCELLED', 'the caller gave up');
}
