// SPDX-License-Identifier: Apache-2.0
// The instances of a pool, already encoded. The autoscaler lists all of them in every loop although few have changed.
// Building a thousand messages each time would produce garbage whose collection delays every other call.
import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { FleetView } from '../../fleet/index.ts';
import type { Machine } from '../../model/machine.ts';
import {
  InstanceSchema,
  type NodeGroupNodesResponse,
  NodeGroupNodesResponseSchema,
} from '../gen/externalgrpc/cloud_provider_pb.js';
import { type InstanceShape, requestedInstances, toInstance } from './instances.ts';

const FIELD = NodeGroupNodesResponseSchema.field.instances.number;
/** Field number and wire type, in front of each instance. */
const TAG = new BinaryWriter().tag(FIELD, WireType.LengthDelimited).finish();

interface EncodedInstance {
  readonly isDeletionRequested: boolean;
  /** Empty when the machine is not listed. */
  readonly bytes: Uint8Array;
}

export class InstanceLists {
  readonly #view: FleetView;
  /** Records are immutable: a changed machine is another object. */
  readonly #encoded = new WeakMap<Machine, EncodedInstance>();

  constructor(view: FleetView) {
    this.#view = view;
  }

  /** Machines requested without a record, recorded, and recently failed; not those gone or cancelled. */
  list(pool: string): NodeGroupNodesResponse {
    const { index } = this.#view;
    return buildResponse([
      ...requestedInstances(pool, this.#view).map(encodeInstance),
      ...index.machinesOf(pool).map((one) => this.#encode(one, index.isDeletionRequested(one.id))),
    ]);
  }

  #encode(machine: Machine, isDeletionRequested: boolean): Uint8Array {
    const known = this.#encoded.get(machine);
    if (known?.isDeletionRequested === isDeletionRequested) return known.bytes;
    const shape = toInstance(machine, isDeletionRequested);
    const bytes = shape === undefined ? new Uint8Array() : encodeInstance(shape);
    this.#encoded.set(machine, { isDeletionRequested, bytes });
    return bytes;
  }
}

function encodeInstance(shape: InstanceShape): Uint8Array {
  const bytes = toBinary(InstanceSchema, create(InstanceSchema, shape));
  const field = new BinaryWriter().raw(TAG).bytes(bytes).finish();
  // Buffer.from copies into the shared pool: fifty thousand separate ArrayBuffers would cost more than their content.
  return Buffer.from(field);
}

/** The encoder accepts raw bytes only as an unknown field, which it writes unchanged. */
function buildResponse(instances: readonly Uint8Array[]): NodeGroupNodesResponse {
  const list = create(NodeGroupNodesResponseSchema);
  const bytes = Buffer.concat(instances);
  if (bytes.length === 0) return list;
  const data = bytes.subarray(TAG.length);
  list.$unknown = [{ no: FIELD, wireType: WireType.LengthDelimited, data }];
  return list;
}
