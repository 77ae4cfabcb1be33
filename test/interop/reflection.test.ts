// SPDX-License-Identifier: Apache-2.0
// The reflection service as grpcurl uses it: list the services, then read their files. Older tools know v1alpha only.
import { join } from 'node:path';
import { create, createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Client, credentials } from '@grpc/grpc-js';
import { loadSync, type MethodDefinition } from '@grpc/proto-loader';
import { describe, expect, it } from 'vitest';
import type { RpcResponse } from './client.ts';
import { withServer } from './test-server.ts';

const PROTOS = join(import.meta.dirname, '../../proto/reflection');
const PROVIDER = 'clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider';

const VERSIONS = [
  ['v1', 'reflection.proto'],
  ['v1alpha', 'reflection_v1alpha.proto'],
] as const;

function reflect(
  port: number,
  version: readonly [string, string],
  request: object,
): Promise<RpcResponse> {
  const [name, file] = version;
  const service = `grpc.reflection.${name}.ServerReflection`;
  const definition = loadSync(join(PROTOS, file), { keepCase: true, oneofs: true })[service];
  const method = Object.values(definition ?? {})[0] as MethodDefinition<object, RpcResponse>;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
  const call = client.makeBidiStreamRequest(
    `/${service}/ServerReflectionInfo`,
    method.requestSerialize,
    method.responseDeserialize,
  );
  call.on('data', resolve);
  call.on('error', reject);
  call.write(request);
  call.end();
  return promise.finally(() => client.close());
}

describe.each(VERSIONS)('reflection %s', (...version) => {
  it(
    'lists all services, including both reflection versions',
    withServer({}, async ({ server }) => {
      const response = await reflect(server.port, version, { list_services: '' });
      expect(
        response['list_services_response'].service.map((one: RpcResponse) => one['name']),
      ).toEqual([
        PROVIDER,
        'grpc.health.v1.Health',
        'grpc.reflection.v1.ServerReflection',
        'grpc.reflection.v1alpha.ServerReflection',
      ]);
    }),
  );

  it(
    'returns the file of a service with all its dependencies',
    withServer({}, async ({ server }) => {
      const response = await reflect(server.port, version, { file_containing_symbol: PROVIDER });
      const files: readonly Uint8Array[] =
        response['file_descriptor_response'].file_descriptor_proto;
      const set = create(FileDescriptorSetSchema, {
        // Dependencies first, as the registry requires.
        file: files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes)).toReversed(),
      });
      const service = createFileRegistry(set).getService(PROVIDER);
      expect(service?.methods).toHaveLength(15);
    }),
  );

  it(
    'returns NotFound for an unknown symbol',
    withServer({}, async ({ server }) => {
      const response = await reflect(server.port, version, {
        file_containing_symbol: 'no.such.Thing',
      });
      expect(response['error_response'].error_code).toBe(5);
    }),
  );
});
