// SPDX-License-Identifier: Apache-2.0
// Reads a pod's resource requests from its Kubernetes protobuf encoding and skips all other fields.
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { milliValue, parseQuantity, wholeValue } from '../../model/quantity.ts';
import { InvalidRequest } from '../../ports/errors.ts';

export interface PodRequests {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

const POD_SPEC = 2;
const SPEC = { containers: 2, initContainers: 20 } as const;
const CONTAINER_RESOURCES = 8;
const RESOURCES_REQUESTS = 2;
const ENTRY = { key: 1, value: 2 } as const;
const QUANTITY_STRING = 1;
/** On all levels together; far more than any pod has. A field of two bytes costs about a hundred bytes of memory here. */
const MAX_POD_FIELDS = 20_000;

const NO_REQUESTS: PodRequests = { cpuMilli: 0, memoryBytes: 0 };

/** The sum over all containers, or the largest init container if that is more. */
export function readPodRequests(bytes: Uint8Array): PodRequests {
  const fieldsOf = createFieldReader();
  const requestsOf = (container: Uint8Array) => readContainerRequests(container, fieldsOf);
  try {
    const spec = concatenateParts(fieldsOf(bytes).get(POD_SPEC));
    const specFields = fieldsOf(spec);
    const total = (specFields.get(SPEC.containers) ?? [])
      .map(requestsOf)
      .reduce(addRequests, NO_REQUESTS);
    return (specFields.get(SPEC.initContainers) ?? []).map(requestsOf).reduce(maxRequests, total);
  } catch (cause) {
    if (cause instanceof InvalidRequest) throw cause;
    throw new InvalidRequest('REQUEST_INVALID', 'the pod is not a valid Kubernetes Pod', { cause });
  }
}

function readContainerRequests(container: Uint8Array, fieldsOf: ReadFields): PodRequests {
  const resources = fieldsOf(concatenateParts(fieldsOf(container).get(CONTAINER_RESOURCES)));
  const requests = new Map(
    (resources.get(RESOURCES_REQUESTS) ?? []).map((entry) => {
      const fields = fieldsOf(entry);
      const quantity = fieldsOf(concatenateParts(fields.get(ENTRY.value)));
      return [
        decodeLastText(fields.get(ENTRY.key)),
        decodeLastText(quantity.get(QUANTITY_STRING)),
      ] as const;
    }),
  );
  return {
    cpuMilli: parseAmount(requests.get('cpu'), milliValue),
    memoryBytes: parseAmount(requests.get('memory'), wholeValue),
  };
}

function parseAmount(
  text: string | undefined,
  read: (quantity: Parameters<typeof milliValue>[0]) => bigint,
): number {
  if (text === undefined || text === '') return 0;
  const quantity = parseQuantity(text);
  if (!quantity.ok)
    throw new InvalidRequest(
      'REQUEST_INVALID',
      `a resource request of the pod ${quantity.problem}`,
    );
  return Number(read(quantity.value));
}

/** The length-delimited fields of a message, by number. */
type ReadFields = (bytes: Uint8Array) => ReadonlyMap<number, readonly Uint8Array[]>;

/** For one pod: the limit applies to all messages that it reads. */
function createFieldReader(): ReadFields {
  let count = 0;
  return (bytes) => {
    const reader = new BinaryReader(bytes);
    const fields = new Map<number, Uint8Array[]>();
    while (reader.pos < reader.len) {
      count += 1;
      if (count > MAX_POD_FIELDS) {
        throw new InvalidRequest(
          'REQUEST_INVALID',
          `the pod has more than ${MAX_POD_FIELDS} fields`,
        );
      }
      const [field, wireType] = reader.tag();
      if (wireType === WireType.LengthDelimited) {
        const parts = fields.get(field) ?? [];
        parts.push(reader.bytes());
        fields.set(field, parts);
      } else {
        reader.skip(wireType, field);
      }
    }
    return fields;
  };
}

/** Protobuf merges repeated occurrences of a submessage; concatenated bytes decode to the merged message. */
function concatenateParts(parts: readonly Uint8Array[] | undefined): Uint8Array {
  return Buffer.concat(parts ?? []);
}

function decodeLastText(parts: readonly Uint8Array[] | undefined): string {
  return new TextDecoder().decode(parts?.at(-1) ?? new Uint8Array());
}

function addRequests(left: PodRequests, right: PodRequests): PodRequests {
  return {
    cpuMilli: left.cpuMilli + right.cpuMilli,
    memoryBytes: left.memoryBytes + right.memoryBytes,
  };
}

function maxRequests(left: PodRequests, right: PodRequests): PodRequests {
  return {
    cpuMilli: Math.max(left.cpuMilli, right.cpuMilli),
    memoryBytes: Math.max(left.memoryBytes, right.memoryBytes),
  };
}
