// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../clock.ts';
import { Cancelled, TimedOut } from '../errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../transport.ts';

/** A request as the peer sees it: whole, since in here nothing travels in pieces. */
export interface RecordedRequest {
  readonly method: TransportRequest['method'];
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array;
  /** The body as UTF-8. */
  readonly text: string;
  /** Aborts when the caller gives up or its head timeout passes. */
  readonly signal: AbortSignal;
}

export interface ScriptedAnswer {
  readonly status: number;
  readonly reason?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
}

/** Answers, or throws one of our errors as a socket would. */
export type ScriptedPeer = (request: RecordedRequest) => ScriptedAnswer | Promise<ScriptedAnswer>;

/** A transport without sockets: a function is the peer. Records what was sent; head timeouts run on the clock given. */
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
  answerWith(peer: ScriptedPeer): void {
    this.#peer = peer;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    if (request.signal?.aborted === true) throw cancelled(false);
    const gaveUp = new AbortController();
    const recorded = await record(request, gaveUp.signal);
    this.requests.push(recorded);
    const answer = await this.#firstOf(request, gaveUp, async () => this.#peer(recorded));
    return {
      status: answer.status,
      reason: answer.reason ?? '',
      headers: lowerCased(answer.headers ?? {}),
      body: streamed(answer.body ?? '', request.signal),
    };
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }

  /** The answer, the head timeout or the caller's abort, whichever comes first. */
  #firstOf(
    request: TransportRequest,
    gaveUp: AbortController,
    answer: () => Promise<ScriptedAnswer>,
  ): Promise<ScriptedAnswer> {
    const done = new AbortController();
    return new Promise<ScriptedAnswer>((resolve, reject) => {
      const giveUp = (error: Error) => {
        gaveUp.abort();
        reject(error);
      };
      const onAbort = () => giveUp(cancelled(true));
      request.signal?.addEventListener('abort', onAbort, { once: true, signal: done.signal });
      this.#clock?.sleep(request.headTimeoutMs, { signal: done.signal }).then(
        () => giveUp(timedOut(request)),
        () => undefined,
      );
      answer().then(resolve, reject);
      // With a reason of its own: making the usual one takes longer than everything else here.
    }).finally(() => done.abort('answered'));
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
    // Not awaited: a peer that waits for its next event would keep the one who left from leaving.
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
  return new Cancelled('CANCELLED', 'the request was called off', { facts: { requestSent } });
}

function timedOut(request: TransportRequest): TimedOut {
  const { origin } = new URL(request.url);
  return new TimedOut(
    'REQUEST_TIMED_OUT',
    `${origin} did not answer within ${request.headTimeoutMs} ms`,
    { facts: { requestSent: true } },
  );
}
