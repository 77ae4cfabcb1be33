// SPDX-License-Identifier: Apache-2.0
// What a pod asks for, out of Kubernetes' protobuf form of it; everything else in it is skipped.
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { milliValue, parseQuantity, wholeValue } from '../../model/quantity.ts';
import { InvalidRequest } from '../../ports/errors.ts';

export interface PodDemand {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

const POD_SPEC = 2;
const SPEC = { containers: 2, initContainers: 20 } as const;
const CONTAINER_RESOURCES = 8;
const RESOURCES_REQUESTS = 2;
const ENTRY = { key: 1, value: 2 } as const;
const QUANTITY_STRING = 1;
/** Of all levels together; far more than any pod has. Two bytes make a part, and each costs a hundred here. */
const PARTS_MAX = 20_000;

const NOTHING: PodDemand = { cpuMilli: 0, memoryBytes: 0 };

/** All containers together, or the largest of those that run before them. */
export function readPodDemand(bytes: Uint8Array): PodDemand {
  const fieldsOf = partsReader();
  const demand = (container: Uint8Array) => containerDemand(container, fieldsOf);
  try {
    const spec = merged(fieldsOf(bytes).get(POD_SPEC));
    const parts = fieldsOf(spec);
    const together = (parts.get(SPEC.containers) ?? []).map(demand).reduce(sum, NOTHING);
    return (parts.get(SPEC.initContainers) ?? []).map(demand).reduce(larger, together);
  } catch (cause) {
    if (cause instanceof InvalidRequest) throw cause;
    throw new InvalidRequest('REQUEST_INVALID', 'the pod is not a Kubernetes pod', { cause });
  }
}

function containerDemand(container: Uint8Array, fieldsOf: ReadParts): PodDemand {
  const resources = fieldsOf(merged(fieldsOf(container).get(CONTAINER_RESOURCES)));
  const requests = new Map(
    (resources.get(RESOURCES_REQUESTS) ?? []).map((entry) => {
      const fields = fieldsOf(entry);
      const quantity = fieldsOf(merged(fields.get(ENTRY.value)));
      return [textOf(fields.get(ENTRY.key)), textOf(quantity.get(QUANTITY_STRING))] as const;
    }),
  );
  return {
    cpuMilli: amount(requests.get('cpu'), milliValue),
    memoryBytes: amount(requests.get('memory'), wholeValue),
  };
}

function amount(
  text: string | undefined,
  read: (quantity: Parameters<typeof milliValue>[0]) => bigint,
): number {
  if (text === undefined || text === '') return 0;
  const quantity = parseQuantity(text);
  if (!quantity.ok) throw new InvalidRequest('REQUEST_INVALID', `a request ${quantity.problem}`);
  return Number(read(quantity.value));
}

/** The length-delimited fields of a message, by number. */
type ReadParts = (bytes: Uint8Array) => ReadonlyMap<number, readonly Uint8Array[]>;

/** For one pod: what it reads counts together. */
function partsReader(): ReadParts {
  let count = 0;
  return (bytes) => {
    const reader = new BinaryReader(bytes);
    const fields = new Map<number, Uint8Array[]>();
    while (reader.pos < reader.len) {
      count += 1;
      if (count > PARTS_MAX) throw new InvalidRequest('REQUEST_INVALID', 'the pod has no end');
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

/** Parts of one message may come apart; put together they are the whole. */
function merged(parts: readonly Uint8Array[] | undefined): Uint8Array {
  return Buffer.concat(parts ?? []);
}

function textOf(parts: readonly Uint8Array[] | undefined): string {
  return new TextDecoder().decode(parts?.at(-1) ?? new Uint8Array());
}

function sum(left: PodDemand, right: PodDemand): PodDemand {
  return {
    cpuMilli: left.cpuMilli + right.cpuMilli,
    memoryBytes: left.memoryBytes + right.memoryBytes,
  };
}

function larger(left: PodDemand, right: PodDemand): PodDemand {
  return {
    cpuMilli: Math.max(left.cpuMilli, right.cpuMilli),
    memoryBytes: Math.max(left.memoryBytes, right.memoryBytes),
  };
}
