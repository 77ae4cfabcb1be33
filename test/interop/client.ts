// SPDX-License-Identifier: Apache-2.0
// A client of one generation of the Cluster Autoscaler: its own proto file, another gRPC and another protobuf
// implementation than the server's.
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

const PROTOS = join(import.meta.dirname, 'protos');

/** Whatever the proto file says; a test that asks for a field which is not there fails by it. */
export interface Answer {
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
    { deadlineMs = 20_000, cancel }: CallOptions = {},
  ): Promise<Answer> {
    const method = this.#methods.get(rpc);
    if (method === undefined) throw new Error(`no rpc ${rpc}`);
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const call = this.#client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      { deadline: Date.now() + deadlineMs },
      (error: ServiceError | null, answer?: Answer) => {
        if (error === null && answer !== undefined) resolve(answer);
        else reject(error ?? new Error('no answer'));
      },
    );
    cancel?.addEventListener('abort', () => call.cancel());
    return promise;
  }

  /** Status number and words of a call that must fail. */
  async failure(
    rpc: string,
    request: object = {},
    options: CallOptions = {},
  ): Promise<{ readonly code: number; readonly details: string }> {
    return this.call(rpc, request, options).then(
      (answer) => {
        throw new Error(`${rpc} was answered: ${JSON.stringify(answer)}`);
      },
      (error: ServiceError) => ({
        code: error.code, // grpc-js leaves some of the escapes that the protocol asks for; Go's client does not.
        details: decodeURIComponent(error.details),
      }),
    );
  }

  /** Bytes that no proto file makes. */
  raw(path: string, bytes: Buffer): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const same = (value: Buffer) => value;
    this.#client.makeUnaryRequest(
      path,
      same,
      same,
      bytes,
      { deadline: Date.now() + 20_000 },
      (error, answer) =>
        error === null && answer !== undefined
          ? resolve(answer)
          : reject(error ?? new Error('no answer')),
    );
    return promise;
  }

  close(): void {
    this.#client.close();
  }
}
