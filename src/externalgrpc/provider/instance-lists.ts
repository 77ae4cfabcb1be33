// SPDX-License-Identifier: Apache-2.0
// The instances of a pool, in the form in which they go over the wire. The autoscaler asks for all of them in every loop
// while hardly any has changed: a thousand messages made anew each time would keep the garbage collector busier than
// the answer is worth, and every other call would wait for it.
import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { FleetView } from '../../fleet/index.ts';
import type { Machine } from '../../model/machine.ts';
import {
  InstanceSchema,
  type NodeGroupNodesResponse,
  NodeGroupNodesResponseSchema,
} from '../gen/externalgrpc/cloud_provider_pb.js';
import { comingInstances, type InstanceShape, instanceOf } from './instances.ts';

const FIELD = NodeGroupNodesResponseSchema.field.instances.number;
/** The number of the field and what it holds, in front of each instance. */
const TAG = new BinaryWriter().tag(FIELD, WireType.LengthDelimited).finish();

interface Written {
  readonly isLeaving: boolean;
  /** Empty where it is not shown. */
  readonly bytes: Uint8Array;
}

export class InstanceLists {
  readonly #view: FleetView;
  /** A record never changes; another one takes its place. */
  readonly #written = new WeakMap<Machine, Written>();

  constructor(view: FleetView) {
    this.#view = view;
  }

  /** Asked for and without a record, recorded, and failed lately; not what is gone or was called off. */
  of(pool: string): NodeGroupNodesResponse {
    const { index } = this.#view;
    return listOf([
      ...comingInstances(pool, this.#view).map(written),
      ...index.machinesOf(pool).map((one) => this.#bytesOf(one, index.isDeletionRequested(one.id))),
    ]);
  }

  #bytesOf(machine: Machine, isLeaving: boolean): Uint8Array {
    const known = this.#written.get(machine);
    if (known?.isLeaving === isLeaving) return known.bytes;
    const shape = instanceOf(machine, isLeaving);
    const bytes = shape === undefined ? new Uint8Array() : written(shape);
    this.#written.set(machine, { isLeaving, bytes });
    return bytes;
  }
}

function written(shape: InstanceShape): Uint8Array {
  const bytes = toBinary(InstanceSchema, create(InstanceSchema, shape));
  const whole = new BinaryWriter().raw(TAG).bytes(bytes).finish();
  // Copied into a buffer that many share: fifty thousand of their own would weigh more than what is in them.
  return Buffer.from(whole);
}

/** A message cannot hold bytes for a field it knows; one that it takes for unknown is written as it is. */
function listOf(instances: readonly Uint8Array[]): NodeGroupNodesResponse {
  const list = create(NodeGroupNodesResponseSchema);
  const bytes = Buffer.concat(instances);
  if (bytes.length === 0) return list;
  const data = bytes.subarray(TAG.length);
  list.$unknown = [{ no: FIELD, wireType: WireType.LengthDelimited, data }];
  return list;
}
