// SPDX-License-Identifier: Apache-2.0
// Node groups: the pools with their current limits and sizes. A summary of each pool is cached until the pool's records
// change, since the autoscaler reads it many times per loop.

import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { PoolConfig } from '../../config/types/index.ts';
import type { FleetView, Headroom } from '../../fleet/index.ts';
import type { Machine } from '../../model/machine.ts';
import { type Member, maxMachines } from '../../pools/index.ts';
import type { Clock } from '../../ports/clock.ts';
import { NotFound, Unreachable } from '../../ports/errors.ts';
import type { FleetAccess } from '../fleet-access.ts';
import {
  InstanceSchema,
  type NodeGroupNodesResponse,
  NodeGroupNodesResponseSchema,
} from '../gen/externalgrpc/cloud_provider_pb.js';
import type { ExternalGrpcSettings } from '../settings.ts';
import {
  type InstanceShape,
  isUnacknowledgedFailure,
  requestedInstances,
  toInstance,
} from './instances.ts';

export interface GroupView {
  readonly id: string;
  readonly minSize: number;
  readonly maxSize: number;
  readonly debug: string;
}

interface PoolSummary {
  readonly version: number;
  readonly memberCount: number;
  /** Members, plus failed creations that the autoscaler has not acknowledged yet. */
  readonly targetSize: number;
  instances: NodeGroupNodesResponse | undefined;
  claims: { readonly headroom: Headroom; readonly count: number } | undefined;
}

/** An older reading of the hosts offers no headroom: on hosts that do not respond, no VM can be created. */
const HEADROOM_MAX_AGE_MS = 45_000;

export interface GroupParts {
  readonly fleet: Pick<FleetAccess, 'view' | 'forecast'>;
  readonly settings: ExternalGrpcSettings;
  readonly clock: Pick<Clock, 'now'>;
}

export class Groups {
  readonly #fleet: GroupParts['fleet'];
  readonly #clock: GroupParts['clock'];
  readonly #settings: ReadonlyMap<string, PoolConfig>;
  readonly #summaries = new Map<string, PoolSummary>();
  readonly #instanceLists: InstanceLists;

  constructor({ fleet, settings, clock }: GroupParts) {
    this.#fleet = fleet;
    this.#clock = clock;
    this.#instanceLists = new InstanceLists(fleet.view);
    this.#settings = new Map(settings.pools.map((group) => [group.name, group]));
  }

  all(): readonly GroupView[] {
    const known = [...this.#settings.values()].filter((group) => this.#isKnown(group));
    return known.map((group) => this.#describe(group));
  }

  /** Undefined for a pool that is not in the config, and for one about which nothing is known yet. */
  find(id: string): GroupView | undefined {
    const group = this.#settings.get(id);
    return group === undefined || !this.#isKnown(group) ? undefined : this.#describe(group);
  }

  settings(id: string): PoolConfig {
    const group = this.#settings.get(id);
    if (group === undefined) throw new NotFound('POOL_NOT_FOUND', `no node group ${quoteId(id)}`);
    if (this.#isKnown(group)) return group;
    const regions = group.regions.join(', ');
    throw new Unreachable(
      'VIEW_STALE',
      `nothing is known about node group ${id}: ${regions} not read yet`,
    );
  }

  /**
   * Whether one of its regions has been read, or records of it exist. After the records were lost, a pool whose regions
   * cannot be read would appear empty, and the autoscaler would create its machines again in other groups.
   */
  #isKnown({ name, regions }: PoolConfig): boolean {
    const { forecast, view } = this.#fleet;
    const { index, pools } = view;
    return (
      regions.some((region) => forecast.isComplete(region)) ||
      index.machinesOf(name).length > 0 ||
      index.openIntentsOf(name).length > 0 ||
      pools.get(name) !== undefined
    );
  }

  targetSize(id: string): number {
    return this.#summarize(this.settings(id)).targetSize;
  }

  instances(id: string): NodeGroupNodesResponse {
    const summary = this.#summarize(this.settings(id));
    summary.instances ??= this.#instanceLists.list(id);
    return summary.instances;
  }

  /** How many more machines fit; undefined before the first count. */
  headroom(id: string): number | undefined {
    const counted = this.#fleet.forecast.headroom(id);
    if (counted === undefined) return undefined;
    const group = this.settings(id);
    if (!this.isReadWithin(group, HEADROOM_MAX_AGE_MS)) return 0;
    return Math.max(0, counted.machines - this.#countClaims(group, counted));
  }

  /** Members that use up headroom since it was counted, placed or not. */
  #countClaims(group: PoolConfig, headroom: Headroom): number {
    const summary = this.#summarize(group);
    if (summary.claims?.headroom === headroom) return summary.claims.count;
    const isNew = ({ phase, placedAt = 0 }: Member) =>
      phase === undefined || phase === 'requested' || placedAt > headroom.countedAt;
    const count = this.#fleet.view.index
      .membersOf(group.name)
      .filter((member) => isNew(member) && !headroom.waiting.has(member.id)).length;
    summary.claims = { headroom, count };
    return count;
  }

  /** Whether one of the group's regions was read at most `maxAgeMs` ago. */
  isReadWithin({ regions }: PoolConfig, maxAgeMs: number): boolean {
    const since = this.#clock.now() - maxAgeMs;
    return regions.some((region) => (this.#fleet.forecast.takenAt(region) ?? -Infinity) >= since);
  }

  /** The maximum is never below the target: the autoscaler would delete machines. */
  #describe(group: PoolConfig): GroupView {
    const { targetSize, memberCount } = this.#summarize(group);
    const headroom = this.headroom(group.name);
    const max = maxMachines(group);
    const fits = headroom === undefined ? max : Math.min(max, memberCount + headroom);
    const maxSize = Math.max(targetSize, mayOffer(group, fits) ? fits : 0);
    return {
      id: group.name,
      minSize: group.limits.min,
      maxSize,
      debug: this.#debug(group, targetSize, headroom),
    };
  }

  #debug(group: PoolConfig, targetSize: number, headroom: number | undefined): string {
    const { name, limits } = group;
    const isOutdated = headroom !== undefined && !this.isReadWithin(group, HEADROOM_MAX_AGE_MS);
    const reason = isOutdated
      ? 'its hosts cannot be read'
      : this.#fleet.forecast.headroom(name)?.reason;
    const text = headroom === undefined ? 'headroom not counted yet' : `headroom for ${headroom}`;
    return `${name} (${limits.min}-${maxMachines(group)}, target ${targetSize}, ${reason ?? text})`;
  }

  #summarize({ name }: PoolConfig): PoolSummary {
    const { index } = this.#fleet.view;
    const version = index.version(name);
    const known = this.#summaries.get(name);
    if (known?.version === version) return known;
    const members = index.membersOf(name);
    const failed = index
      .machinesOf(name)
      .filter((one) => one.failure !== undefined)
      .filter((machine) => isUnacknowledgedFailure(machine, index.isDeletionRequested(machine.id)));
    const summary = {
      version,
      memberCount: members.length,
      targetSize: members.length + failed.length,
      instances: undefined,
      claims: undefined,
    };
    this.#summaries.set(name, summary);
    return summary;
  }
}

/** A group with zeroOrMaxNodeScaling grows from zero to its maximum in one step, so a smaller maximum is useless. */
function mayOffer(group: PoolConfig, fits: number): boolean {
  return group.clusterAutoscaler.zeroOrMaxNodeScaling !== true || fits === maxMachines(group);
}

/** Ids come from the client: any content, any length. */
function quoteId(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

// The instances of a pool, already encoded. The autoscaler lists all of them in every loop although few have changed.
// Building a thousand messages each time would produce garbage whose collection delays every other call.

const FIELD = NodeGroupNodesResponseSchema.field.instances.number;
/** Field number and wire type, in front of each instance. */
const TAG = new BinaryWriter().tag(FIELD, WireType.LengthDelimited).finish();

interface EncodedInstance {
  readonly isDeletionRequested: boolean;
  /** Empty when the machine is not listed. */
  readonly bytes: Uint8Array;
}

class InstanceLists {
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
