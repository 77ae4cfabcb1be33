// SPDX-License-Identifier: Apache-2.0
import { Cancelled } from './errors.ts';

/**
 * Runs calls until it is closed; `close` waits for the calls in flight, because a write that waits for a lock must still
 * complete for its caller.
 */
export class InFlightCalls {
  readonly #inFlight = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  async run<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw new Cancelled('CANCELLED', 'the store is closed');
    throwIfAborted(signal);
    const call = work();
    this.#inFlight.add(call);
    try {
      return await call;
    } finally {
      this.#inFlight.delete(call);
    }
  }

  /** Runs `onIdle` once, after the last call in flight. */
  close(onIdle: () => void): Promise<void> {
    this.#closing ??= Promise.allSettled(this.#inFlight).then(onIdle);
    return this.#closing;
  }
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new Cancelled('CANCELLED', 'the call was cancelled');
}
