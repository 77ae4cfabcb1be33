// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';

interface Call {
  readonly name: string;
  readonly startedAt: number;
}

/** Calls of a port that have not ended. Every call has a deadline; one that outlives it by far will never end. */
export class CallsInProgress {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** In the order of their start. */
  readonly #calls = new Set<Call>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** The same port, observed. */
  observe<Port extends object>(port: Port, portName: string): Port {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          const result: unknown = member.apply(target, args);
          return result instanceof Promise
            ? this.#untilSettled(`${String(name)} of ${portName}`, result)
            : result;
        };
      },
    });
  }

  /** The call that has been in progress for longest. */
  oldest(): { readonly name: string; readonly ms: number } | undefined {
    const [call] = this.#calls;
    if (call === undefined) return undefined;
    return { name: call.name, ms: this.#clock.monotonic() - call.startedAt };
  }

  async #untilSettled(name: string, result: Promise<unknown>): Promise<unknown> {
    const call = { name, startedAt: this.#clock.monotonic() };
    this.#calls.add(call);
    try {
      return await result;
    } finally {
      this.#calls.delete(call);
    }
  }
}
