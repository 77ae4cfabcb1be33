// SPDX-License-Identifier: Apache-2.0
import type { ThreadChannel } from '../thread-channel.ts';

/** Both ends of a channel within one thread. Messages are cloned, as between threads. */
export function threadChannelPair<A, B>(): {
  readonly near: ThreadChannel<A, B>;
  readonly far: ThreadChannel<B, A>;
  /** Simulates the failure of the far thread. */
  readonly fail: (error: Error) => void;
} {
  const toFar = new MessageQueue<A>();
  const toNear = new MessageQueue<B>();
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  const end = <Out, In>(
    out: MessageQueue<Out>,
    into: MessageQueue<In>,
  ): ThreadChannel<Out, In> => ({
    send: (message) => out.put(message),
    onMessage: (listener) => into.listen(listener),
    failed: failure.promise,
    close: () => Promise.resolve(out.close()),
  });
  return { near: end(toFar, toNear), far: end(toNear, toFar), fail: failure.reject };
}

class MessageQueue<T> {
  readonly #waiting: T[] = [];
  #listener: ((message: T) => void) | undefined;
  #isClosed = false;

  put(message: T): void {
    if (this.#isClosed) return;
    this.#waiting.push(structuredClone(message));
    queueMicrotask(() => this.#deliver());
  }

  listen(listener: (message: T) => void): void {
    this.#listener = listener;
    this.#deliver();
  }

  close(): void {
    this.#isClosed = true;
  }

  #deliver(): void {
    const listener = this.#listener;
    if (listener === undefined) return;
    for (const message of this.#waiting.splice(0)) listener(message);
  }
}
