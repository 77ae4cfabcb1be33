// SPDX-License-Identifier: Apache-2.0
// Dispatches HTTP/2 streams to RPC handlers by the gRPC protocol, without a gRPC library: the autoscaler makes many small
// calls, and a library's work per call exceeds the work of the handler (ADR 0015).
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { create, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { Call, type CallOptions } from './call.ts';
import { MAX_MESSAGE_BYTES, MessageBudget, MessageReader } from './message-reader.ts';

import { refuseGrpc } from './refuse.ts';
import type { ResponseInit, Rpc, Services, StreamingRpc, UnaryRpc } from './services.ts';
import { GrpcError } from './status.ts';

/** Eight of the largest messages; the autoscaler sends large messages one at a time. */
const MAX_BUFFERED_BYTES = 8 * MAX_MESSAGE_BYTES;

/** Requests of one stream that wait for the handler; tools send one at a time. */
const MAX_QUEUED_REQUESTS = 64;

/** From the first byte of a message to its last; the autoscaler gives a call 5 seconds by default. */
const MESSAGE_TIMEOUT_MS = 30_000;
const MESSAGE_TIMEOUT_TEXT = `the message was not complete within ${MESSAGE_TIMEOUT_MS / 1_000} seconds`;

export type StreamHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** Wraps every call: may refuse it, observes its outcome, and turns every error into a GrpcError. */
export type CallInterceptor = <T>(
  rpc: Pick<Rpc, 'service' | 'name' | 'kind'>,
  work: () => T | Promise<T>,
) => Promise<T>;

export interface DispatchOptions extends CallOptions {
  readonly services: Services;
  readonly intercept: CallInterceptor;
}

export function dispatchCalls(options: DispatchOptions): StreamHandler {
  const { services, intercept } = options;
  const budget = new MessageBudget(MAX_BUFFERED_BYTES);
  return (stream, headers) => {
    const rpc = services.find(headers[':path']);
    if (rpc === undefined) {
      return refuseGrpc(stream, { status: 'Unimplemented', message: 'unknown RPC' });
    }
    const call = new Call(stream, options);
    if (!call.applyDeadline(headers)) return;
    const share = budget.openShare();
    stream.once('close', share.release);
    const reader = new MessageReader({ layout: rpc.layout, share });
    const sink =
      rpc.kind === 'unary' ? unarySink(rpc, call, intercept) : streamingSink(rpc, call, intercept);
    receiveMessages(stream, { call, reader, sink });
  };
}

/** Receives the messages of a call. Both methods may throw a GrpcError. */
interface RequestSink {
  accept(message: Uint8Array): void;
  end(): void;
}

interface Reception {
  readonly call: Call;
  readonly reader: MessageReader;
  readonly sink: RequestSink;
}

function receiveMessages(stream: ServerHttp2Stream, { call, reader, sink }: Reception): void {
  let cancelTimeout: (() => void) | undefined;
  const failOnError = (work: () => void) => {
    // Data after the end of the call is discarded with the stream.
    if (call.isEnded) return;
    try {
      work();
    } catch (error) {
      call.fail(ensureGrpcError(error));
    }
  };
  const onData = (chunk: Buffer) => {
    const messages = reader.push(chunk);
    if (messages.length > 0 || !reader.isIncomplete) {
      cancelTimeout?.();
      cancelTimeout = undefined;
    }
    if (reader.isIncomplete) {
      cancelTimeout ??= call.failAfter(MESSAGE_TIMEOUT_MS, MESSAGE_TIMEOUT_TEXT);
    }
    for (const message of messages) sink.accept(message);
  };
  const onEnd = () => {
    reader.end();
    sink.end();
  };
  stream.on('data', (chunk: Buffer) => failOnError(() => onData(chunk)));
  stream.on('end', () => failOnError(onEnd));
}

function unarySink(rpc: UnaryRpc, call: Call, intercept: CallInterceptor): RequestSink {
  let request: Message | undefined;
  return {
    accept(bytes) {
      if (request !== undefined)
        throw new GrpcError(
          'Unimplemented',
          'a unary call has exactly one request message; received several',
        );
      request = decodeRequest(rpc, bytes);
    },
    end() {
      const only = request;
      if (only === undefined)
        throw new GrpcError('Unimplemented', 'the call has no request message');
      intercept(rpc, async () => encodeResponse(rpc, await rpc.handle(only, call)))
        .then((response) => call.reply(response))
        .catch((error: unknown) => call.fail(ensureGrpcError(error)));
    },
  };
}

function streamingSink(rpc: StreamingRpc, call: Call, intercept: CallInterceptor): RequestSink {
  const requests = new RequestQueue();
  const signal = call.signalUntilShutdown;
  signal.addEventListener('abort', () => requests.end());
  const work = async () => {
    for await (const response of rpc.handle(requests, { signal }))
      await call.write(encodeResponse(rpc, response));
  };
  intercept(rpc, work)
    .then(() => call.finish())
    .catch((error: unknown) => call.fail(ensureGrpcError(error)));
  return { accept: (bytes) => requests.push(decodeRequest(rpc, bytes)), end: () => requests.end() };
}

/** Requests of a stream, in order of arrival. */
class RequestQueue implements AsyncIterable<Message> {
  readonly #waiting: Message[] = [];
  #isEnded = false;
  #wake: () => void = () => undefined;

  push(message: Message): void {
    if (this.#waiting.length >= MAX_QUEUED_REQUESTS) {
      throw new GrpcError(
        'ResourceExhausted',
        `more than ${MAX_QUEUED_REQUESTS} requests of the stream are waiting`,
      );
    }
    this.#waiting.push(message);
    this.#wake();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
    for (;;) {
      yield* this.#waiting.splice(0);
      if (this.#waiting.length > 0) continue;
      if (this.#isEnded) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
  }
}

function decodeRequest({ input }: Rpc, bytes: Uint8Array): Message {
  try {
    // Each unknown field would cost about a hundred times its size on the wire.
    return fromBinary(input, bytes, { readUnknownFields: false });
  } catch (cause) {
    throw new GrpcError('InvalidArgument', `not a valid ${input.typeName}`, { cause });
  }
}

function encodeResponse({ output }: Rpc, response: ResponseInit): Uint8Array {
  return toBinary(output, create(output, response));
}

function ensureGrpcError(error: unknown): GrpcError {
  if (error instanceof GrpcError) return error;
  return new GrpcError('Internal', 'internal error; see the log', { cause: error });
}
