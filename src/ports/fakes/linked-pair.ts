// SPDX-License-Identifier: Apache-2.0
import type { Link } from '../link.ts';

/** Both ends of a line within one thread. Messages are cloned, as threads do it. */
export function linkedPair<A, B>(): {
  readonly near: Link<A, B>;
  readonly far: Link<B, A>;
  /** As if the far thread had died. */
  readonly cut: (error: Error) => void;
} {
  const toFar = new Line<A>();
  const toNear = new Line<B>();
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined);
  const end = <Out, In>(out: Line<Out>, into: Line<In>): Link<Out, In> => ({
    send: (message) => out.put(message),
    onMessage: (listener) => into.listen(listener),
    broken: broken.promise,
    close: () => Promise.resolve(out.close()),
  });
  return { near: end(toFar, toNear), far: end(toNear, toFar), cut: broken.reject };
}

class Line<T> {
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
