// SPDX-License-Identifier: Apache-2.0
// A client of one generation of the Cluster Autoscaler: it has its own proto file, and other gRPC and protobuf
// implementations than the server.
import { join } from 'node:path';
import {
  type ChannelCredentials,
  Client,
  credentials,
  loadPackageDefinition,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync, type MethodDefinition } from '@grpc/proto-loader';

export type Generation = 'a0' | 'a' | 'b' | 'c';

/** Only ends a call that hangs: the machine may be loaded. */
const DEADLINE_MS = 60_000;
const PROTOS = join(import.meta.dirname, 'protos');

/** Fields as the proto file defines them. */
export interface RpcResponse {
  // oxlint-disable-next-line typescript/no-explicit-any -- the shape is the proto file's
  readonly [field: string]: any;
}

export interface CallOptions {
  readonly deadlineMs?: number;
  readonly cancel?: AbortSignal;
}

export class RpcClient {
  readonly #client: Client;
  readonly #methods: ReadonlyMap<string, MethodDefinition<object, object>>;

  constructor(
    address: string,
    protoFile: string,
    secure: ChannelCredentials = credentials.createInsecure(),
  ) {
    const definition = loadSync(join(PROTOS, protoFile), {
      includeDirs: [PROTOS],
      keepCase: true,
      longs: String,
      enums: String,
      defaults: true,
      oneofs: true,
    });
    loadPackageDefinition(definition);
    this.#client = new Client(address, secure, {
      'grpc.max_receive_message_length': -1,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_send_message_length': -1,
    });
    const services = Object.values(definition).filter((one) => !('format' in one));
    this.#methods = new Map(services.flatMap((service) => Object.entries(service)) as never);
  }

  call(
    rpc: string,
    request: object = {},
    { deadlineMs = DEADLINE_MS, cancel }: CallOptions = {},
  ): Promise<RpcResponse> {
    const method = this.#methods.get(rpc);
    if (method === undefined) throw new Error(`no rpc ${rpc}`);
    const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
    const call = this.#client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      { deadline: Date.now() + deadlineMs },
      (error: ServiceError | null, response?: RpcResponse) => {
        if (error === null && response !== undefined) resolve(response);
        else reject(error ?? new Error('no response'));
      },
    );
    cancel?.addEventListener('abort', () => call.cancel());
    return promise;
  }

  /** Status code and message of a call that must fail. */
  async expectError(
    rpc: string,
    request: object = {},
    options: CallOptions = {},
  ): Promise<{ readonly code: number; readonly details: string }> {
    return this.call(rpc, request, options).then(
      (response) => {
        throw new Error(`${rpc} succeeded: ${JSON.stringify(response)}`);
      },
      (error: ServiceError) => ({
        code: error.code,
        // grpc-js does not decode all escapes of the protocol; grpc-go does.
        details: decodeURIComponent(error.details),
      }),
    );
  }

  /** Sends bytes that no proto file produces. */
  raw(path: string, bytes: Buffer): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const identity = (value: Buffer) => value;
    this.#client.makeUnaryRequest(
      path,
      identity,
      identity,
      bytes,
      { deadline: Date.now() + DEADLINE_MS },
      (error, response) =>
        error === null && response !== undefined
          ? resolve(response)
          : reject(error ?? new Error('no response')),
    );
    return promise;
  }

  close(): void {
    this.#client.close();
  }
}
