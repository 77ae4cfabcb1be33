// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../clock.ts';
import { Cancelled, TimedOut } from '../errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../transport.ts';

/** A request as the peer receives it, with the whole body. */
export interface RecordedRequest {
  readonly method: TransportRequest['method'];
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array;
  /** The body as UTF-8. */
  readonly text: string;
  /** Aborts when the caller cancels or the time limit expires. */
  readonly signal: AbortSignal;
}

export interface ScriptedResponse {
  readonly status: number;
  readonly reason?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
}

/** Returns a response, or throws one of our errors as a socket would. */
export type ScriptedPeer = (
  request: RecordedRequest,
) => ScriptedResponse | Promise<ScriptedResponse>;

/** A transport without sockets: a function acts as the peer. Records requests; time limits use the given clock. */
export class ScriptedTransport implements Transport {
  readonly requests: RecordedRequest[] = [];
  closed = false;
  readonly #clock: Clock | undefined;
  #peer: ScriptedPeer;

  constructor(peer: ScriptedPeer, options: { readonly clock?: Clock } = {}) {
    this.#peer = peer;
    this.#clock = options.clock;
  }

  /** Replaces the peer from the next request on. */
  respondWith(peer: ScriptedPeer): void {
    this.#peer = peer;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    if (isRefused(request)) throw cancelled(false);
    const limit = new ExchangeLimit(request, this.#clock);
    const recorded = await record(request, limit.abandoned);
    this.requests.push(recorded);
    const response = await limit
      .apply(Promise.resolve(recorded).then(this.#peer))
      .catch((error) => {
        limit.end();
        throw error;
      });
    const { body = '' } = response;
    const isWhole = typeof body === 'string' || body instanceof Uint8Array;
    if (isWhole || request.streamsResponse === true) limit.end();
    return {
      status: response.status,
      reason: response.reason ?? '',
      headers: lowerCased(response.headers ?? {}),
      body: isWhole ? encoded(body) : streamed(body, limit),
    };
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}

function isRefused({ signal, maySend }: TransportRequest): boolean {
  return signal?.aborted === true || maySend?.() === false;
}

/** Rejects the steps of an exchange when its time limit expires or its signal aborts. */
class ExchangeLimit {
  receivedBytes: number | undefined;
  readonly #request: TransportRequest;
  readonly #abandoned = new AbortController();
  readonly #ended = new AbortController();
  #error: Error | undefined;

  constructor(request: TransportRequest, clock: Clock | undefined) {
    this.#request = request;
    clock?.sleep(request.timeoutMs, { signal: this.#ended.signal }).then(
      () => this.#abandon(timedOut(this.#request, this.receivedBytes)),
      () => undefined,
    );
  }

  /** Aborts when the caller cancels or the limit expires. */
  get abandoned(): AbortSignal {
    return this.#abandoned.signal;
  }

  apply<T>(step: Promise<T>): Promise<T> {
    const done = new AbortController();
    return new Promise<T>((resolve, reject) => {
      // First of all: the failure of a step that is abandoned at once must not stay unhandled.
      step.then(resolve, reject);
      const onAbort = () => this.#abandon(cancelled(true));
      const onAbandoned = () => reject(this.#error ?? cancelled(true));
      if (this.abandoned.aborted) return onAbandoned();
      this.abandoned.addEventListener('abort', onAbandoned, { signal: done.signal });
      if (this.#request.signal?.aborted === true) return onAbort();
      this.#request.signal?.addEventListener('abort', onAbort, { signal: done.signal });
      // An explicit reason: creating the default DOMException would dominate the run time of tests.
    }).finally(() => done.abort('done'));
  }

  end(): void {
    this.#ended.abort('ended');
  }

  #abandon(error: Error): void {
    this.#error = error;
    this.#abandoned.abort();
  }
}

async function record(request: TransportRequest, signal: AbortSignal): Promise<RecordedRequest> {
  const bytes = await bytesOf(request.body);
  return {
    method: request.method,
    url: new URL(request.url),
    headers: lowerCased(request.headers ?? {}),
    bytes,
    text: new TextDecoder().decode(bytes),
    signal,
  };
}

async function bytesOf(body: TransportRequest['body']): Promise<Uint8Array> {
  if (body === undefined) return new Uint8Array();
  if (typeof body === 'string') return new TextEncoder().encode(body);
  if (body instanceof Uint8Array) return body;
  const bytes = new Uint8Array(body.byteLength);
  let length = 0;
  for await (const part of body.open()) {
    bytes.set(part, length);
    length += part.length;
  }
  return bytes;
}

async function* encoded(body: string | Uint8Array): AsyncIterable<Uint8Array> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  if (bytes.length > 0) yield bytes;
}

async function* streamed(
  body: AsyncIterable<Uint8Array>,
  limit: ExchangeLimit,
): AsyncIterable<Uint8Array> {
  const parts = body[Symbol.asyncIterator]();
  limit.receivedBytes = 0;
  try {
    for (;;) {
      const part = await limit.apply(parts.next());
      if (part.done === true) return;
      limit.receivedBytes += part.value.length;
      yield part.value;
    }
  } finally {
    limit.end();
    // Not awaited: a peer that waits for its next event would block the reader that leaves.
    void parts.return?.();
  }
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

function cancelled(requestSent: boolean): Cancelled {
  return new Cancelled('CANCELLED', 'the request was cancelled', { facts: { requestSent } });
}

function timedOut(request: TransportRequest, receivedBytes: number | undefined): TimedOut {
  const { origin, pathname } = new URL(request.url);
  const call = `${request.method} ${pathname}`;
  const limit = `${request.timeoutMs / 1_000} s`;
  const progress =
    receivedBytes === undefined
      ? `no answer to ${call} for ${limit}`
      : `the answer of ${call} stalled after ${receivedBytes} bytes for ${limit}`;
  return new TimedOut('REQUEST_TIMED_OUT', `${origin}: ${progress}`, {
    facts: { requestSent: true, progress },
  });
}
