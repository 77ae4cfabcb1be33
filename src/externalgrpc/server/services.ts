// SPDX-License-Identifier: Apache-2.0
// The RPCs that a listener serves, by path.
import type {
  DescMessage,
  DescMethod,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { Bug } from '../../ports/errors.ts';
import { buildLayout, type MessageLayout } from './scan.ts';
import { GrpcError } from './status.ts';

export interface CallContext {
  /** Aborted when the response is no longer needed: the call is cancelled or late; that of a stream also at shutdown. */
  readonly signal: AbortSignal;
}

type MethodImplementation<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (
        request: MessageShape<I>,
        context: CallContext,
      ) => MessageInitShape<O> | Promise<MessageInitShape<O>>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, context: CallContext) => AsyncIterable<MessageInitShape<O>>
      : M extends DescMethodBiDiStreaming<infer I, infer O>
        ? (
            requests: AsyncIterable<MessageShape<I>>,
            context: CallContext,
          ) => AsyncIterable<MessageInitShape<O>>
        : never;

/** One function per RPC of a service. */
export type Implementation<S extends DescService> = {
  readonly [Name in keyof S['method']]: MethodImplementation<S['method'][Name]>;
};

/** A message of the type in the RPC's descriptor. */
export type ResponseInit = MessageInitShape<DescMessage>;

interface RpcDescription {
  readonly service: string;
  readonly name: string;
  readonly input: DescMessage;
  readonly output: DescMessage;
  readonly layout: MessageLayout;
}

export interface UnaryRpc extends RpcDescription {
  readonly kind: 'unary';
  readonly handle: (request: Message, context: CallContext) => ResponseInit | Promise<ResponseInit>;
}

export interface StreamingRpc extends RpcDescription {
  readonly kind: 'streaming';
  readonly handle: (
    requests: AsyncIterable<Message>,
    context: CallContext,
  ) => AsyncIterable<ResponseInit>;
}

export type Rpc = UnaryRpc | StreamingRpc;

export class Services {
  readonly #rpcs = new Map<string, Rpc>();

  add<S extends DescService>(service: S, implementation: Implementation<S>): this {
    const handlers = new Map<string, unknown>(Object.entries(implementation));
    for (const method of service.methods) {
      const rpc = toRpc(method, handlers.get(method.localName));
      this.#rpcs.set(`/${service.typeName}/${method.name}`, rpc);
    }
    return this;
  }

  find(path: string | undefined): Rpc | undefined {
    return path === undefined ? undefined : this.#rpcs.get(path);
  }
}

type ServerStreaming = (request: Message, context: CallContext) => AsyncIterable<ResponseInit>;

/** `add` checked the types; from here on messages are typed by their descriptors only. */
function toRpc(method: DescMethod, handler: unknown): Rpc {
  const { input, output, name, parent, methodKind } = method;
  const description = { service: parent.typeName, name, input, output, layout: buildLayout(input) };
  /* oxlint-disable typescript/no-unsafe-type-assertion */
  switch (methodKind) {
    case 'unary':
      return { ...description, kind: 'unary', handle: handler as UnaryRpc['handle'] };
    case 'server_streaming':
      return {
        ...description,
        kind: 'streaming',
        handle: fromSingleRequest(handler as ServerStreaming),
      };
    case 'bidi_streaming':
      return { ...description, kind: 'streaming', handle: handler as StreamingRpc['handle'] };
    case 'client_streaming':
      throw new Bug('BUG', `${name}: client streaming is not implemented`);
  }
  /* oxlint-enable typescript/no-unsafe-type-assertion */
}

function fromSingleRequest(handle: ServerStreaming): StreamingRpc['handle'] {
  return async function* (requests, context) {
    for await (const request of requests) {
      yield* handle(request, context);
      return;
    }
    throw new GrpcError('Unimplemented', 'the call has no request message');
  };
}
