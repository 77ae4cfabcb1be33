// SPDX-License-Identifier: Apache-2.0
// The reflection service: describes the served services to tools such as grpcurl.
import { type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { Clock } from '../../ports/clock.ts';
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../gen/health/health_pb.js';
import { ServerReflection, type ServerReflectionRequest } from '../gen/reflection/reflection_pb.js';
import {
  type ServerReflectionRequest as ServerReflectionRequestV1Alpha,
  ServerReflection as ServerReflectionV1Alpha,
} from '../gen/reflection/reflection_v1alpha_pb.js';
import type { Implementation, Services } from './services.ts';
import { GrpcError, STATUS } from './status.ts';

type Request = ServerReflectionRequest | ServerReflectionRequestV1Alpha;

type ReflectionResponse =
  | { case: 'listServicesResponse'; value: { service: { name: string }[] } }
  | { case: 'fileDescriptorResponse'; value: { fileDescriptorProto: Uint8Array[] } }
  | {
      case: 'allExtensionNumbersResponse';
      value: { baseTypeName: string; extensionNumber: number[] };
    }
  | { case: 'errorResponse'; value: { errorCode: number; errorMessage: string } };

/** Both versions: older tools know v1alpha only. */
export const REFLECTION: readonly DescService[] = [ServerReflection, ServerReflectionV1Alpha];

export function addReflection(served: Services, services: readonly DescService[]): void {
  const files = withDependencies(services.map(({ file }) => file));
  const respond = (request: Request) => respondTo(request, services, files);
  served.add(ServerReflection, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests)
        yield { ...echoRequest(request), messageResponse: respond(request) };
    },
  });
  served.add(ServerReflectionV1Alpha, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests)
        yield { ...echoRequest(request), messageResponse: respond(request) };
    },
  });
}

function echoRequest<R extends Request>(originalRequest: R) {
  return { validHost: originalRequest.host, originalRequest };
}

function respondTo(
  { messageRequest }: Request,
  services: readonly DescService[],
  files: readonly DescFile[],
): ReflectionResponse {
  switch (messageRequest.case) {
    case 'listServices':
      return {
        case: 'listServicesResponse',
        value: { service: services.map(({ typeName }) => ({ name: typeName })) },
      };
    case 'fileByFilename':
      return describeFile(files.find((file) => `${file.name}.proto` === messageRequest.value));
    case 'fileContainingSymbol':
      return describeFile(files.find((file) => declares(file, messageRequest.value)));
    case 'allExtensionNumbersOfType':
      return {
        case: 'allExtensionNumbersResponse',
        value: { baseTypeName: messageRequest.value, extensionNumber: [] },
      };
    case 'fileContainingExtension':
    case undefined:
      return notFound();
  }
}

function describeFile(file: DescFile | undefined): ReflectionResponse {
  if (file === undefined) return notFound();
  const bytes = withDependencies([file]).map(({ proto }) =>
    toBinary(FileDescriptorProtoSchema, proto),
  );
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto: bytes } };
}

function notFound(): ReflectionResponse {
  return {
    case: 'errorResponse',
    value: { errorCode: STATUS.NotFound, errorMessage: 'not found' },
  };
}

/** Types, services, and methods of services. */
function declares(file: DescFile, symbol: string): boolean {
  const types = [...file.messages, ...file.enums, ...file.services].map(({ typeName }) => typeName);
  return types.some((name) => symbol === name || symbol.startsWith(`${name}.`));
}

/** Each file once; the protocol requires no order. */
function withDependencies(roots: readonly DescFile[]): readonly DescFile[] {
  const found = new Map<string, DescFile>();
  const visit = (file: DescFile) => {
    if (found.has(file.name)) return;
    found.set(file.name, file);
    for (const dependency of file.dependencies) visit(dependency);
  };
  for (const root of roots) visit(root);
  return [...found.values()];
}

const CHECK_INTERVAL_MS = 1_000;

interface HealthParts {
  /** Full names; the empty name stands for the whole server. */
  readonly services: readonly string[];
  readonly isReady: () => boolean;
  readonly clock: Clock;
}

export function createHealthService({
  services,
  isReady,
  clock,
}: HealthParts): Implementation<typeof Health> {
  const isKnown = (service: string) => service === '' || services.includes(service);
  const currentStatus = () => (isReady() ? Status.SERVING : Status.NOT_SERVING);
  return {
    check({ service }) {
      if (!isKnown(service)) throw new GrpcError('NotFound', 'unknown service');
      return { status: currentStatus() };
    },
    async *watch({ service }, { signal }) {
      if (!isKnown(service)) yield { status: Status.SERVICE_UNKNOWN };
      let lastSent: Status | undefined;
      while (!signal.aborted) {
        const status = isKnown(service) ? currentStatus() : lastSent;
        if (status !== undefined && status !== lastSent) yield { status };
        lastSent = status;
        await clock.sleep(CHECK_INTERVAL_MS, { signal }).catch(() => undefined);
      }
    },
  };
}
