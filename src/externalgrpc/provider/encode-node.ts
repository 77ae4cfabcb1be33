// SPDX-License-Identifier: Apache-2.0
// Encodes a core/v1 Node in Kubernetes' protobuf form, as its Go code marshals it: without an envelope. Only the fields
// that a template needs; the field numbers are Kubernetes' and never change.
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import type { TemplateNode } from '../../pools/index.ts';

const NODE = { metadata: 1, spec: 2, status: 3 } as const;
const OBJECT_META = { name: 1, labels: 11 } as const;
const NODE_SPEC = { taints: 5 } as const;
const TAINT = { key: 1, value: 2, effect: 3 } as const;
const NODE_STATUS = { capacity: 1, allocatable: 2, conditions: 4, nodeInfo: 7 } as const;
const CONDITION = { type: 1, status: 2, reason: 5 } as const;
const NODE_INFO = { operatingSystem: 9, architecture: 10 } as const;
const QUANTITY = { string: 1 } as const;
const ENTRY = { key: 1, value: 2 } as const;

const LENGTH_DELIMITED = 2;

/** Pressure conditions are False explicitly: an absent condition could count as unknown. */
const CONDITIONS: readonly (readonly [type: string, status: string])[] = [
  ['MemoryPressure', 'False'],
  ['DiskPressure', 'False'],
  ['PIDPressure', 'False'],
  ['Ready', 'True'],
];

export function encodeNode(node: TemplateNode): Uint8Array {
  const writer = new BinaryWriter();
  writeMessage(writer, NODE.metadata, (meta) => {
    writeText(meta, OBJECT_META.name, node.name);
    for (const [key, value] of Object.entries(node.labels)) {
      writeMessage(meta, OBJECT_META.labels, (entry) => {
        writeText(entry, ENTRY.key, key);
        writeText(entry, ENTRY.value, value);
      });
    }
  });
  writeMessage(writer, NODE.spec, (spec) => {
    for (const taint of node.taints) {
      writeMessage(spec, NODE_SPEC.taints, (one) => {
        writeText(one, TAINT.key, taint.key);
        writeText(one, TAINT.value, taint.value);
        writeText(one, TAINT.effect, taint.effect);
      });
    }
  });
  writeMessage(writer, NODE.status, (status) => writeStatus(status, node));
  return writer.finish();
}

function writeStatus(status: BinaryWriter, node: TemplateNode): void {
  writeResources(status, NODE_STATUS.capacity, node.capacity);
  writeResources(status, NODE_STATUS.allocatable, node.allocatable);
  for (const [type, value] of CONDITIONS) {
    writeMessage(status, NODE_STATUS.conditions, (condition) => {
      writeText(condition, CONDITION.type, type);
      writeText(condition, CONDITION.status, value);
      writeText(condition, CONDITION.reason, 'Template');
    });
  }
  writeMessage(status, NODE_STATUS.nodeInfo, (info) => {
    writeText(info, NODE_INFO.operatingSystem, 'linux');
    writeText(info, NODE_INFO.architecture, node.architecture);
  });
}

function writeResources(
  status: BinaryWriter,
  field: number,
  resources: Readonly<Record<string, string>>,
): void {
  for (const [name, amount] of Object.entries(resources)) {
    writeMessage(status, field, (entry) => {
      writeText(entry, ENTRY.key, name);
      writeMessage(entry, ENTRY.value, (quantity) => writeText(quantity, QUANTITY.string, amount));
    });
  }
}

function writeMessage(
  writer: BinaryWriter,
  field: number,
  fill: (inner: BinaryWriter) => void,
): void {
  writer.tag(field, LENGTH_DELIMITED).fork();
  fill(writer);
  writer.join();
}

/** Writes empty strings too, as Kubernetes' own code does. */
function writeText(writer: BinaryWriter, field: number, value: string): void {
  writer.tag(field, LENGTH_DELIMITED).string(value);
}
