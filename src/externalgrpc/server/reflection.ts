// SPDX-License-Identifier: Apache-2.0
// Tells tools what the server speaks.
import { type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { ServerReflection, type ServerReflectionRequest } from '../gen/reflection/reflection_pb.js';
import {
  ServerReflection as FirstServerReflection,
  type ServerReflectionRequest as FirstServerReflectionRequest,
} from '../gen/reflection/reflection_v1alpha_pb.js';
import type { Services } from './services.ts';
import { STATUS } from './status.ts';

type Request = ServerReflectionRequest | FirstServerReflectionRequest;

type Answer =
  | { case: 'listServicesResponse'; value: { service: { name: string }[] } }
  | { case: 'fileDescriptorResponse'; value: { fileDescriptorProto: Uint8Array[] } }
  | {
      case: 'allExtensionNumbersResponse';
      value: { baseTypeName: string; extensionNumber: number[] };
    }
  | { case: 'errorResponse'; value: { errorCode: number; errorMessage: string } };

/** Under both of its names: older tools know the first one only. */
export const REFLECTION: readonly DescService[] = [ServerReflection, FirstServerReflection];

export function addReflection(served: Services, services: readonly DescService[]): void {
  const files = filesOf(services.map(({ file }) => file));
  const answerTo = (request: Request) => answer(request, services, files);
  served.add(ServerReflection, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests)
        yield { ...about(request), messageResponse: answerTo(request) };
    },
  });
  served.add(FirstServerReflection, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests)
        yield { ...about(request), messageResponse: answerTo(request) };
    },
  });
}

function about<R extends Request>(originalRequest: R) {
  return { validHost: originalRequest.host, originalRequest };
}

function answer(
  { messageRequest }: Request,
  services: readonly DescService[],
  files: readonly DescFile[],
): Answer {
  switch (messageRequest.case) {
    case 'listServices':
      return {
        case: 'listServicesResponse',
        value: { service: services.map(({ typeName }) => ({ name: typeName })) },
      };
    case 'fileByFilename':
      return described(files.find((file) => `${file.name}.proto` === messageRequest.value));
    case 'fileContainingSymbol':
      return described(files.find((file) => declares(file, messageRequest.value)));
    case 'allExtensionNumbersOfType':
      return {
        case: 'allExtensionNumbersResponse',
        value: { baseTypeName: messageRequest.value, extensionNumber: [] },
      };
    default:
      return nothing();
  }
}

function described(file: DescFile | undefined): Answer {
  if (file === undefined) return nothing();
  const bytes = filesOf([file]).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto: bytes } };
}

function nothing(): Answer {
  return {
    case: 'errorResponse',
    value: { errorCode: STATUS.NotFound, errorMessage: 'there is no such thing here' },
  };
}

/** Types, services, and methods of services. */
function declares(file: DescFile, symbol: string): boolean {
  const types = [...file.messages, ...file.enums, ...file.services].map(({ typeName }) => typeName);
  return types.some((name) => symbol === name || symbol.startsWith(`${name}.`));
}

/** Each before those that import it is not asked for; each once is. */
function filesOf(roots: readonly DescFile[]): readonly DescFile[] {
  const found = new Map<string, DescFile>();
  const visit = (file: DescFile) => {
    if (found.has(file.name)) return;
    found.set(file.name, file);
    for (const dependency of file.dependencies) visit(dependency);
  };
  for (const root of roots) visit(root);
  return [...found.values()];
}
