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
  /** Aborts when the caller cancels or the header timeout expires. */
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

/** A transport without sockets: a function acts as the peer. Records requests; header timeouts use the given clock. */
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
    if (request.signal?.aborted === true) throw cancelled(false);
    const abandoned = new AbortController();
    const recorded = await record(request, abandoned.signal);
    this.requests.push(recorded);
    const response = await this.#respond(request, abandoned, async () => this.#peer(recorded));
    return {
      status: response.status,
      reason: response.reason ?? '',
      headers: lowerCased(response.headers ?? {}),
      body: streamed(response.body ?? '', request.signal),
    };
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }

  /** Settles with the response, the header timeout or the abort, whichever comes first. */
  #respond(
    request: TransportRequest,
    abandoned: AbortController,
    callPeer: () => Promise<ScriptedResponse>,
  ): Promise<ScriptedResponse> {
    const done = new AbortController();
    return new Promise<ScriptedResponse>((resolve, reject) => {
      const abandon = (error: Error) => {
        abandoned.abort();
        reject(error);
      };
      const onAbort = () => abandon(cancelled(true));
      request.signal?.addEventListener('abort', onAbort, { once: true, signal: done.signal });
      this.#clock?.sleep(request.headTimeoutMs, { signal: done.signal }).then(
        () => abandon(timedOut(request)),
        () => undefined,
      );
      callPeer().then(resolve, reject);
      // An explicit reason: creating the default DOMException would dominate the run time of tests.
    }).finally(() => done.abort('response received'));
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

async function* streamed(
  body: string | Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncIterable<Uint8Array> {
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
    if (bytes.length > 0) yield bytes;
    return;
  }
  const parts = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const part = await orAborted(parts.next(), signal);
      if (part.done === true) return;
      yield part.value;
    }
  } finally {
    // Not awaited: a peer that waits for its next event would block the reader that leaves.
    void parts.return?.();
  }
}

function orAborted<T>(next: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return next;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(cancelled(true));
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    next.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

function cancelled(requestSent: boolean): Cancelled {
  return new Cancelled('CANCELLED', 'the request was cancelled', { facts: { requestSent } });
}

function timedOut(request: TransportRequest): TimedOut {
  const { origin } = new URL(request.url);
  return new TimedOut(
    'REQUEST_TIMED_OUT',
    `${origin} did not respond within ${request.headTimeoutMs} ms`,
    { facts: { requestSent: true } },
  );
}
