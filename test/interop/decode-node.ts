// SPDX-License-Identifier: Apache-2.0
import { join } from 'node:path';
import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';
import type { RpcResponse } from './client.ts';

const K8S = loadSync(join(import.meta.dirname, 'protos/k8s/core.proto'), {
  keepCase: true,
  longs: String,
});

/** Decodes a v1.Node with another protobuf implementation. */
export function decodeNode(bytes: Buffer): RpcResponse {
  const type = K8S['k8s.core.Node'] as MessageTypeDefinition<object, RpcResponse>;
  return type.deserialize(bytes);
}
