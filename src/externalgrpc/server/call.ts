// SPDX-License-Identifier: Apache-2.0
// One call on its stream: how long it may take, whether anybody still waits for it, and how it ends. It ends once.
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Clock } from '../../ports/clock.ts';
import { CONTENT_TYPE, refuseGrpc, statusTrailers } from './refuse.ts';
import type { CallContext } from './services.ts';
import { GrpcError } from './status.ts';

/** The autoscaler gives a call 5 seconds by default. */
const STALL_TIMEOUT_MS = 60_000;

/** Flags and length. */
const HEADER_BYTES = 5;

export interface CallParts {
  readonly clock: Clock;
  /** Aborted when the server ends. */
  readonly shutdown: AbortSignal;
  /** How long nothing may move on a stream while the client has something to send or to read. */
  readonly stallTimeoutMs?: number | undefined;
}

export class Call implements CallContext {
  readonly #stream: ServerHttp2Stream;
  readonly #parts: CallParts;
  readonly #timers = new Set<AbortController>();
  #abort: AbortController | undefined;
  #trailers: Record<string, string> = { 'grpc-status': '0' };
  #isOver = false;
  /** Of whoever waits to write the next message. */
  #goOn: () => void = () => undefined;

  constructor(stream: ServerHttp2Stream, parts: CallParts) {
    this.#stream = stream;
    this.#parts = parts;
    const { stallTimeoutMs = STALL_TIMEOUT_MS } = parts;
    stream.setTimeout(stallTimeoutMs);
    // Not as the callback of the line above, which is called once: a watch is still many times.
    stream.on('timeout', () => this.#still(stallTimeoutMs));
    stream.once('close', () => this.#end());
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Made for those who ask: most calls are answered before anybody could give them up. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#isOver) this.#abort.abort();
    }
    return AbortSignal.any([this.#abort.signal, this.#parts.shutdown]);
  }

  /** False: it is malformed, and the call has failed. */
  limitTime({ 'grpc-timeout': timeout }: IncomingHttpHeaders): boolean {
    if (timeout === undefined) return true;
    const ms = typeof timeout === 'string' ? timeoutMs(timeout) : undefined;
    if (ms === undefined) {
      this.fail(new GrpcError('InvalidArgument', 'grpc-timeout is malformed'));
      return false;
    }
    this.failAfter(ms, 'the deadline has passed');
    return true;
  }

  /** Unless it is over by then, or what is returned is called. */
  failAfter(ms: number, message: string): () => void {
    const timer = new AbortController();
    this.#timers.add(timer);
    this.#parts.clock.sleep(ms, { signal: timer.signal }).then(
      () => this.fail(new GrpcError('DeadlineExceeded', message)),
      () => undefined,
    );
    return () => {
      this.#timers.delete(timer);
      timer.abort();
    };
  }

  fail(error: GrpcError): void {
    if (this.#isOver) return;
    this.#trailers = statusTrailers(error);
    const { headersSent } = this.#stream;
    this.#end();
    if (headersSent) this.#stream.end();
    else refuseGrpc(this.#stream, error);
  }

  /** The whole answer at once. */
  reply(message: Uint8Array): void {
    if (this.#isOver) return;
    this.#open();
    this.#end();
    this.#stream.end(framed(message));
  }

  /** One of several. Resolves when the next may be written. */
  write(message: Uint8Array): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    if (!this.#stream.headersSent) {
      this.#open();
      this.#stream.on('drain', () => this.#goOn());
    }
    if (this.#stream.write(framed(message))) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#goOn = resolve;
    return promise;
  }

  /** After the last of several. */
  finish(): void {
    if (this.#isOver) return;
    if (!this.#stream.headersSent) this.#open();
    this.#end();
    this.#stream.end();
  }

  #open(): void {
    const stream = this.#stream;
    stream.once('wantTrailers', () => {
      if (stream.closed || stream.destroyed) return;
      stream.sendTrailers(this.#trailers);
      // Whoever still sends is told to stop: nobody will read it, and the call would count as under way. A reset at once
      // would overtake the trailers.
      // oxlint-disable-next-line no-restricted-globals -- Node sends trailers in an immediate of its own
      setImmediate(() => {
        if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
      });
    });
    stream.respond({ ':status': 200, 'content-type': CONTENT_TYPE }, { waitForTrailers: true });
  }

  /** Somebody who watches waits for us for as long as nothing changes. */
  #still(ms: number): void {
    const { readableEnded, writableLength } = this.#stream;
    const isUnread = writableLength > 0;
    if (readableEnded && !isUnread) return;
    // A status would wait behind what is not read.
    if (this.#isOver || isUnread) this.#stream.close(constants.NGHTTP2_CANCEL);
    else this.fail(new GrpcError('DeadlineExceeded', `no data received for ${ms / 1_000} seconds`));
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#goOn();
    for (const timer of this.#timers) timer.abort();
    this.#abort?.abort();
  }
}

const UNITS_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

function timeoutMs(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  const each = UNITS_MS[unit];
  return each === undefined ? undefined : Number(digits) * each;
}

function framed(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, HEADER_BYTES);
  return frame;
}
