// SPDX-License-Identifier: Apache-2.0
// From a stream of HTTP/2 to a service and back, by gRPC's protocol and nothing of a framework: the autoscaler makes many
// small calls, and what a general one builds for each costs more than the answer (ADR 0015).

import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { create, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { Call, type CallParts } from './call.ts';
import { MessageRoom } from './message-room.ts';
import { MESSAGE_MAX_BYTES, MessageReader } from './messages.ts';
import { refuseGrpc } from './refuse.ts';
import type { Answer, Rpc, Services, StreamingRpc, UnaryRpc } from './services.ts';
import { GrpcError } from './status.ts';

/** Eight of the largest; the autoscaler sends such ones one by one. */
const MESSAGES_MAX_BYTES = 8 * MESSAGE_MAX_BYTES;

/** Requests of one stream that wait for their turn; a tool asks one after the other. */
const REQUESTS_WAITING_MAX = 64;

/** From the first byte of a message to its last; the autoscaler gives a call 5 seconds by default. */
const MESSAGE_WITHIN_MS = 30_000;
const TOO_SLOW = `the message did not come within ${MESSAGE_WITHIN_MS / 1_000} seconds`;

export type StreamHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** What is done with every call: may refuse it, hears how it ends, makes every error a GrpcError. */
export type Around = <T>(
  rpc: Pick<Rpc, 'service' | 'name' | 'kind'>,
  work: () => T | Promise<T>,
) => Promise<T>;

export interface AnsweringOptions extends CallParts {
  readonly services: Services;
  readonly around: Around;
}

export function answerCalls(options: AnsweringOptions): StreamHandler {
  const { services, around } = options;
  const room = new MessageRoom(MESSAGES_MAX_BYTES);
  return (stream, headers) => {
    const rpc = services.find(headers[':path']);
    if (rpc === undefined) {
      return refuseGrpc(stream, { status: 'Unimplemented', message: 'unknown RPC' });
    }
    const call = new Call(stream, options);
    if (!call.limitTime(headers)) return;
    const share = room.share();
    stream.once('close', share.giveBack);
    const reader = new MessageReader({ plan: rpc.plan, share });
    const taking = rpc.kind === 'unary' ? one(rpc, call, around) : several(rpc, call, around);
    receive(stream, { call, reader, taking });
  };
}

/** What becomes of messages as they come. Both may throw a GrpcError. */
interface Taking {
  take(message: Uint8Array): void;
  end(): void;
}

interface Receiving {
  readonly call: Call;
  readonly reader: MessageReader;
  readonly taking: Taking;
}

function receive(stream: ServerHttp2Stream, { call, reader, taking }: Receiving): void {
  let patience: (() => void) | undefined;
  const guarded = (work: () => void) => {
    // What comes after the end is thrown away by whoever ends the stream.
    if (call.isOver) return;
    try {
      work();
    } catch (error) {
      call.fail(asGrpcError(error));
    }
  };
  const take = (piece: Buffer) => {
    const messages = reader.take(piece);
    if (messages.length > 0 || !reader.isAmidst) {
      patience?.();
      patience = undefined;
    }
    if (reader.isAmidst) patience ??= call.failAfter(MESSAGE_WITHIN_MS, TOO_SLOW);
    for (const message of messages) taking.take(message);
  };
  const end = () => {
    reader.end();
    taking.end();
  };
  stream.on('data', (piece: Buffer) => guarded(() => take(piece)));
  stream.on('end', () => guarded(end));
}

function one(rpc: UnaryRpc, call: Call, around: Around): Taking {
  let request: Message | undefined;
  return {
    take(bytes) {
      if (request !== undefined) throw new GrpcError('Unimplemented', 'there are several requests');
      request = decoded(rpc, bytes);
    },
    end() {
      const only = request;
      if (only === undefined) throw new GrpcError('Unimplemented', 'there is no request');
      around(rpc, async () => encoded(rpc, await rpc.handle(only, call)))
        .then((answer) => call.reply(answer))
        .catch((error: unknown) => call.fail(asGrpcError(error)));
    },
  };
}

function several(rpc: StreamingRpc, call: Call, around: Around): Taking {
  const inbox = new Inbox();
  call.signal.addEventListener('abort', () => inbox.end());
  const work = async () => {
    for await (const answer of rpc.handle(inbox, call)) await call.write(encoded(rpc, answer));
  };
  around(rpc, work)
    .then(() => call.finish())
    .catch((error: unknown) => call.fail(asGrpcError(error)));
  return { take: (bytes) => inbox.put(decoded(rpc, bytes)), end: () => inbox.end() };
}

/** Requests of a stream, in their order. */
class Inbox implements AsyncIterable<Message> {
  readonly #waiting: Message[] = [];
  #isEnded = false;
  #wake: () => void = () => undefined;

  put(message: Message): void {
    if (this.#waiting.length >= REQUESTS_WAITING_MAX) {
      throw new GrpcError('ResourceExhausted', 'too many requests wait for their answers');
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

function decoded({ input }: Rpc, bytes: Uint8Array): Message {
  try {
    // Fields that we do not know would each cost a hundred times what they are on the wire.
    return fromBinary(input, bytes, { readUnknownFields: false });
  } catch (cause) {
    throw new GrpcError('InvalidArgument', `no valid ${input.typeName}`, { cause });
  }
}

function encoded({ output }: Rpc, answer: Answer): Uint8Array {
  return toBinary(output, create(output, answer));
}

function asGrpcError(error: unknown): GrpcError {
  if (error instanceof GrpcError) return error;
  return new GrpcError('Internal', 'internal error; see the log', { cause: error });
}
