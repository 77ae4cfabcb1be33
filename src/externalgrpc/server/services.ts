// SPDX-License-Identifier: Apache-2.0
// What a listener serves, by the path under which it is called.
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
import { type MessagePlan, planOf } from './message-plan.ts';
import { GrpcError } from './status.ts';

export interface CallContext {
  /** Aborted when nobody waits for the answer any more: given up, too late, or the server ends. */
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

/** A function for each RPC of a service. */
export type Implementation<S extends DescService> = {
  readonly [Name in keyof S['method']]: MethodImplementation<S['method'][Name]>;
};

/** Of whatever type the RPC's descriptor says. */
export type Answer = MessageInitShape<DescMessage>;

interface RpcFacts {
  readonly service: string;
  readonly name: string;
  readonly input: DescMessage;
  readonly output: DescMessage;
  readonly plan: MessagePlan;
}

export interface UnaryRpc extends RpcFacts {
  readonly kind: 'unary';
  readonly handle: (request: Message, context: CallContext) => Answer | Promise<Answer>;
}

export interface StreamingRpc extends RpcFacts {
  readonly kind: 'streaming';
  readonly handle: (
    requests: AsyncIterable<Message>,
    context: CallContext,
  ) => AsyncIterable<Answer>;
}

export type Rpc = UnaryRpc | StreamingRpc;

export class Services {
  readonly #rpcs = new Map<string, Rpc>();

  add<S extends DescService>(service: S, implementation: Implementation<S>): this {
    const handlers = new Map<string, unknown>(Object.entries(implementation));
    for (const method of service.methods) {
      const rpc = rpcOf(method, handlers.get(method.localName));
      this.#rpcs.set(`/${service.typeName}/${method.name}`, rpc);
    }
    return this;
  }

  find(path: string | undefined): Rpc | undefined {
    return path === undefined ? undefined : this.#rpcs.get(path);
  }
}

type ServerStreaming = (request: Message, context: CallContext) => AsyncIterable<Answer>;

/** The types were checked by `add`; from here on messages are told apart by their descriptors only. */
function rpcOf(method: DescMethod, handler: unknown): Rpc {
  const { input, output, name, parent, methodKind } = method;
  const facts = { service: parent.typeName, name, input, output, plan: planOf(input) };
  /* oxlint-disable typescript/no-unsafe-type-assertion */
  switch (methodKind) {
    case 'unary':
      return { ...facts, kind: 'unary', handle: handler as UnaryRpc['handle'] };
    case 'server_streaming':
      return { ...facts, kind: 'streaming', handle: ofOne(handler as ServerStreaming) };
    case 'bidi_streaming':
      return { ...facts, kind: 'streaming', handle: handler as StreamingRpc['handle'] };
    default:
      throw new Bug('BUG', `${name}: nothing of ours is ${methodKind}`);
  }
  /* oxlint-enable typescript/no-unsafe-type-assertion */
}

function ofOne(handle: ServerStreaming): StreamingRpc['handle'] {
  return async function* (requests, context) {
    for await (const request of requests) {
      yield* handle(request, context);
      return;
    }
    throw new GrpcError('Unimplemented', 'there is no request');
  };
}
