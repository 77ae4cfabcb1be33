// SPDX-License-Identifier: Apache-2.0
// One call on its HTTP/2 stream: its deadline, its cancellation and its status. A call ends exactly once.
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Clock } from '../../ports/clock.ts';
import { CONTENT_TYPE, refuseGrpc, statusTrailers } from './refuse.ts';
import type { CallContext } from './services.ts';
import { GrpcError } from './status.ts';

/** The autoscaler's default deadline is 5 seconds. */
const STALL_TIMEOUT_MS = 60_000;

/** One byte of flags, four bytes of length. */
const HEADER_BYTES = 5;

export interface CallOptions {
  readonly clock: Clock;
  /** Aborted when the server shuts down. */
  readonly shutdown: AbortSignal;
  /** Maximum time without progress on a stream whose client has data to send or to read. */
  readonly stallTimeoutMs?: number | undefined;
}

export class Call implements CallContext {
  readonly #stream: ServerHttp2Stream;
  readonly #options: CallOptions;
  readonly #timers = new Set<AbortController>();
  #abort: AbortController | undefined;
  #trailers: Record<string, string> = { 'grpc-status': '0' };
  #isEnded = false;
  /** Resolves the pending `write`. */
  #resumeWriting: () => void = () => undefined;

  constructor(stream: ServerHttp2Stream, options: CallOptions) {
    this.#stream = stream;
    this.#options = options;
    const { stallTimeoutMs = STALL_TIMEOUT_MS } = options;
    stream.setTimeout(stallTimeoutMs);
    // Not as the callback of setTimeout, which runs once: a watch may be quiet many times.
    stream.on('timeout', () => this.#onStall(stallTimeoutMs));
    stream.once('close', () => this.#end());
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Created on first use: most calls finish before a cancellation could matter. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#isEnded) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** For a stream, which would otherwise never end. */
  get signalUntilShutdown(): AbortSignal {
    return AbortSignal.any([this.signal, this.#options.shutdown]);
  }

  /** False when the deadline is malformed: the call has failed. */
  applyDeadline({ 'grpc-timeout': timeout }: IncomingHttpHeaders): boolean {
    if (timeout === undefined) return true;
    const ms = typeof timeout === 'string' ? parseTimeoutMs(timeout) : undefined;
    if (ms === undefined) {
      this.fail(new GrpcError('InvalidArgument', 'grpc-timeout is malformed'));
      return false;
    }
    this.failAfter(ms, 'the deadline has passed');
    return true;
  }

  /** Fails the call after a timeout. The returned function cancels the timeout. */
  failAfter(ms: number, message: string): () => void {
    const timer = new AbortController();
    this.#timers.add(timer);
    this.#options.clock.sleep(ms, { signal: timer.signal }).then(
      () => this.fail(new GrpcError('DeadlineExceeded', message)),
      () => undefined,
    );
    return () => {
      this.#timers.delete(timer);
      timer.abort();
    };
  }

  fail(error: GrpcError): void {
    if (this.#isEnded) return;
    this.#trailers = statusTrailers(error);
    const { headersSent } = this.#stream;
    this.#end();
    if (headersSent) this.#stream.end();
    else refuseGrpc(this.#stream, error);
  }

  /** Sends the response of a unary call and ends the call. */
  reply(message: Uint8Array): void {
    if (this.#isEnded) return;
    this.#sendHeaders();
    this.#end();
    this.#stream.end(frameMessage(message));
  }

  /** Sends one message of a stream. Resolves when the next one may be written. */
  write(message: Uint8Array): Promise<void> {
    if (this.#isEnded) return Promise.resolve();
    if (!this.#stream.headersSent) {
      this.#sendHeaders();
      this.#stream.on('drain', () => this.#resumeWriting());
    }
    if (this.#stream.write(frameMessage(message))) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resumeWriting = resolve;
    return promise;
  }

  /** Ends a stream after its last message. */
  finish(): void {
    if (this.#isEnded) return;
    if (!this.#stream.headersSent) this.#sendHeaders();
    this.#end();
    this.#stream.end();
  }

  #sendHeaders(): void {
    const stream = this.#stream;
    stream.once('wantTrailers', () => {
      if (stream.closed || stream.destroyed) return;
      stream.sendTrailers(this.#trailers);
      // A client that still sends is reset: its data would not be read, and the call would count as in progress. An
      // immediate reset would overtake the trailers.
      // oxlint-disable-next-line no-restricted-globals -- Node sends trailers in an immediate of its own
      setImmediate(() => {
        if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
      });
    });
    stream.respond({ ':status': 200, 'content-type': CONTENT_TYPE }, { waitForTrailers: true });
  }

  /** A quiet stream is fine when the client waits for the server, as in a health watch. */
  #onStall(ms: number): void {
    const { readableEnded, writableLength } = this.#stream;
    const isUnread = writableLength > 0;
    if (readableEnded && !isUnread) return;
    // A status would queue behind the unread data.
    if (this.#isEnded || isUnread) this.#stream.close(constants.NGHTTP2_CANCEL);
    else this.fail(new GrpcError('DeadlineExceeded', `no data received for ${ms / 1_000} seconds`));
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#resumeWriting();
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

function parseTimeoutMs(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  const unitMs = UNITS_MS[unit];
  return unitMs === undefined ? undefined : Number(digits) * unitMs;
}

function frameMessage(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, HEADER_BYTES);
  return frame;
}
