// SPDX-License-Identifier: Apache-2.0
import { join } from 'node:path';
import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';
import type { Answer } from './client.ts';

const K8S = loadSync(join(import.meta.dirname, 'protos/k8s/core.proto'), {
  keepCase: true,
  longs: String,
});

/** A v1.Node out of its bytes, by another protobuf implementation. */
export function nodeOf(bytes: Buffer): Answer {
  const type = K8S['k8s.core.Node'] as MessageTypeDefinition<object, Answer>;
  return type.deserialize(bytes);
}
