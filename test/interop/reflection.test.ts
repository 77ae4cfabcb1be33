// SPDX-License-Identifier: Apache-2.0
// What grpcurl does before its first call: it asks what there is, then for the files that describe it. Older tools know
// the service by its first name only.
import { join } from 'node:path';
import { create, createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Client, credentials } from '@grpc/grpc-js';
import { loadSync, type MethodDefinition } from '@grpc/proto-loader';
import { describe, expect, it } from 'vitest';
import type { Answer } from './client.ts';
import { onStage } from './stage.ts';

const PROTOS = join(import.meta.dirname, '../../proto/reflection');
const PROVIDER = 'clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider';

const VERSIONS = [
  ['v1', 'reflection.proto'],
  ['v1alpha', 'reflection_v1alpha.proto'],
] as const;

function ask(port: number, version: readonly [string, string], request: object): Promise<Answer> {
  const [name, file] = version;
  const service = `grpc.reflection.${name}.ServerReflection`;
  const definition = loadSync(join(PROTOS, file), { keepCase: true, oneofs: true })[service];
  const method = Object.values(definition ?? {})[0] as MethodDefinition<object, Answer>;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
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
    'lists the services, both names of itself too',
    onStage({}, async ({ face }) => {
      const answer = await ask(face.port, version, { list_services: '' });
      expect(answer['list_services_response'].service.map((one: Answer) => one['name'])).toEqual([
        PROVIDER,
        'grpc.health.v1.Health',
        'grpc.reflection.v1.ServerReflection',
        'grpc.reflection.v1alpha.ServerReflection',
      ]);
    }),
  );

  it(
    'describes a service with everything that its file needs',
    onStage({}, async ({ face }) => {
      const answer = await ask(face.port, version, { file_containing_symbol: PROVIDER });
      const files: readonly Uint8Array[] = answer['file_descriptor_response'].file_descriptor_proto;
      const set = create(FileDescriptorSetSchema, {
        // Each before those that import it, as the registry wants them.
        file: files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes)).toReversed(),
      });
      const service = createFileRegistry(set).getService(PROVIDER);
      expect(service?.methods).toHaveLength(15);
    }),
  );

  it(
    'says so where there is nothing',
    onStage({}, async ({ face }) => {
      const answer = await ask(face.port, version, { file_containing_symbol: 'no.such.Thing' });
      expect(answer['error_response'].error_code).toBe(5);
    }),
  );
});
