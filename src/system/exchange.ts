// SPDX-License-Identifier: Apache-2.0
import type { Dispatcher } from 'undici';
import type { Clock } from '../ports/clock.ts';
import { Cancelled, TimedOut } from '../ports/errors.ts';
import type { SizedBody, TransportRequest } from '../ports/transport.ts';
import { translateSocketError, type UnreachableCode } from './socket-errors.ts';

/** Large chunks of a body are split, so that `facts.progress` says about how much of it the peer accepted. */
const SEND_CHUNK_BYTES = 64 * 1_024;

/** State of one exchange: its time limit, how far it is, and the translation of its errors. */
export class Exchange {
  readonly signal: AbortSignal;
  readonly #request: TransportRequest;
  readonly #clock: Clock;
  readonly #unreachable: UnreachableCode;
  readonly #expired = new AbortController();
  readonly #ended = new AbortController();
  /** Bytes may be on the wire; before that the peer has certainly received nothing. */
  #started = false;
  #responded = false;
  #wasRefused = false;
  #sentBytes = 0;
  #receivedBytes = 0;
  #lastProgressAt: number;

  constructor(
    request: TransportRequest,
    options: { readonly clock: Clock; readonly unreachable: UnreachableCode },
  ) {
    this.#request = request;
    this.#clock = options.clock;
    this.#unreachable = options.unreachable;
    this.#lastProgressAt = this.#clock.monotonic();
    this.signal =
      request.signal === undefined
        ? this.#expired.signal
        : AbortSignal.any([request.signal, this.#expired.signal]);
    this.#clock.sleep(request.timeoutMs, { signal: this.#ended.signal }).then(
      () => this.#expired.abort(),
      () => undefined,
    );
  }

  /** Follows the exchange and ends its time limit with the last byte, or with the headers of a streamed response. */
  readonly observe: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
    dispatch(options, {
      onRequestStart: (controller, context) => {
        handler.onRequestStart?.(controller, context);
        if (this.#isSendingRefused()) return controller.abort(sendingRefused());
        this.#started = true;
        this.#lastProgressAt = this.#clock.monotonic();
      },
      onResponseStart: (...head) => {
        this.#responded = true;
        this.#lastProgressAt = this.#clock.monotonic();
        if (this.#request.streamsResponse === true) this.stopTimer();
        handler.onResponseStart?.(...head);
      },
      onResponseData: (controller, chunk) => {
        this.#receivedBytes += chunk.length;
        this.#lastProgressAt = this.#clock.monotonic();
        handler.onResponseData?.(controller, chunk);
      },
      onResponseEnd: (...end) => {
        this.stopTimer();
        handler.onResponseEnd?.(...end);
      },
      onResponseError: (...error) => {
        this.stopTimer();
        handler.onResponseError?.(...error);
      },
    });

  #isSendingRefused(): boolean {
    this.#wasRefused ||= this.#request.maySend?.() === false;
    return this.#wasRefused;
  }

  stopTimer(): void {
    this.#ended.abort('the exchange has ended');
  }

  async *open(body: SizedBody): AsyncIterable<Uint8Array> {
    for await (const chunk of body.open()) {
      for (let at = 0; at < chunk.length; at += SEND_CHUNK_BYTES) {
        const part = chunk.subarray(at, at + SEND_CHUNK_BYTES);
        if (this.#isSendingRefused()) throw sendingRefused();
        yield part;
        this.#sentBytes += part.length;
        this.#lastProgressAt = this.#clock.monotonic();
      }
    }
  }

  async *translateErrors(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      throw this.translate(error);
    } finally {
      // The reader may leave before the end.
      this.stopTimer();
    }
  }

  translate(error: unknown): Error {
    const facts = { requestSent: this.#started, progress: this.#progress() };
    if (this.#request.signal?.aborted === true || this.#wasRefused) {
      return new Cancelled('CANCELLED', 'the request was cancelled', { facts });
    }
    const { origin } = new URL(this.#request.url);
    if (this.#expired.signal.aborted) {
      const limit = formatSeconds(this.#request.timeoutMs);
      const message = `${origin}: ${facts.progress}; the limit for the whole exchange is ${limit}`;
      return new TimedOut('REQUEST_TIMED_OUT', message, { facts });
    }
    return translateSocketError(error, {
      origin,
      requestSent: this.#started,
      unreachable: this.#unreachable,
    });
  }

  /** Without the query, which may contain secrets. */
  #progress(): string {
    const { method, url, body } = this.#request;
    const call = `${method} ${new URL(url).pathname}`;
    const silence = `for ${formatSeconds(this.#clock.monotonic() - this.#lastProgressAt)}`;
    if (!this.#started) return `no connection for ${call} ${silence}`;
    if (this.#responded) {
      return `the answer of ${call} stalled after ${this.#receivedBytes} bytes ${silence}`;
    }
    if (isSized(body) && this.#sentBytes < body.byteLength) {
      return `the request ${call} stalled after ${this.#sentBytes} of ${body.byteLength} bytes ${silence}`;
    }
    return `no answer to ${call} ${silence}`;
  }
}

function sendingRefused(): Error {
  return new Error('the request may no longer be sent');
}

export function isSized(body: TransportRequest['body']): body is SizedBody {
  return typeof body === 'object' && 'open' in body;
}

function formatSeconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}
