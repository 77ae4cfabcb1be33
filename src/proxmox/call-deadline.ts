// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { Cancelled, TimedOut } from '../ports/errors.ts';

/** With less time no attempt can succeed; timers may also fire a little early. */
const MIN_ATTEMPT_MS = 10;

interface LimitedCall {
  readonly operation: string;
  readonly timeoutMs?: number;
}

/**
 * The limit of a whole call. It ends the waits between the attempts; an attempt gets the time that is left, so that its
 * own error says how far it was.
 */
export class CallDeadline {
  readonly #call: LimitedCall;
  readonly #clock: Clock;
  readonly #endsAt: number;
  readonly #stopped = new AbortController();
  readonly #over = new AbortController();

  constructor(call: LimitedCall, clock: Clock) {
    this.#call = call;
    this.#clock = clock;
    const { timeoutMs = Number.POSITIVE_INFINITY } = call;
    this.#endsAt = clock.monotonic() + timeoutMs;
    if (call.timeoutMs === undefined) return;
    clock.sleep(timeoutMs, { signal: this.#stopped.signal }).then(
      () => this.#over.abort(),
      () => undefined,
    );
  }

  get leftMs(): number {
    return this.#endsAt - this.#clock.monotonic();
  }

  get isOver(): boolean {
    return this.leftMs < MIN_ATTEMPT_MS;
  }

  /** Aborts when the signal does or the time is over. */
  limit(signal: AbortSignal): AbortSignal {
    return this.#call.timeoutMs === undefined
      ? signal
      : AbortSignal.any([signal, this.#over.signal]);
  }

  /** A wait that the deadline aborted is not a cancellation by the caller. */
  translate(error: unknown): unknown {
    const { operation, timeoutMs } = this.#call;
    const isWaitEnded = error instanceof Cancelled && this.#over.signal.aborted;
    if (!isWaitEnded || timeoutMs === undefined) return error;
    const message = `${operation}: not done within ${timeoutMs / 1_000} s, retries included`;
    const { requestSent = true } = error.facts;
    return new TimedOut('REQUEST_TIMED_OUT', message, { cause: error, facts: { requestSent } });
  }

  stop(): void {
    this.#stopped.abort('done');
  }
}
