// SPDX-License-Identifier: Apache-2.0
// Node groups with their current limits and sizes. A summary of each group is cached until the records of its pool
// change, since the autoscaler reads it many times per loop.

import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { PoolConfig } from '../../config/types/index.ts';
import type { FleetView, Headroom } from '../../fleet/index.ts';
import type { Machine, MachineSize } from '../../model/machine.ts';
import {
  countAllowed,
  type Member,
  maxMachines,
  type NodeGroup,
  nodeGroupsOf,
} from '../../pools/index.ts';
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

interface GroupSummary {
  readonly version: number;
  readonly memberCount: number;
  /** Members of the pool in its other groups. */
  readonly otherCount: number;
  /** How many more machines of this size the limits of the pool allow. */
  readonly allowed: number;
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
  readonly #groups: ReadonlyMap<string, NodeGroup>;
  readonly #groupsByPool: ReadonlyMap<string, readonly NodeGroup[]>;
  readonly #summaries = new Map<string, GroupSummary>();
  readonly #instanceLists: InstanceLists;

  constructor({ fleet, settings, clock }: GroupParts) {
    this.#fleet = fleet;
    this.#clock = clock;
    this.#instanceLists = new InstanceLists(fleet.view);
    this.#groupsByPool = new Map(settings.pools.map((pool) => [pool.name, nodeGroupsOf(pool)]));
    const groups = [...this.#groupsByPool.values()].flat();
    this.#groups = new Map(groups.map((group) => [group.id, group]));
  }

  all(): readonly GroupView[] {
    const known = this.list().filter(({ pool }) => this.#isKnown(pool));
    return known.map((group) => this.#describe(group));
  }

  list(): readonly NodeGroup[] {
    return [...this.#groups.values()];
  }

  /** Undefined for a group that is not in the config, and for one about which nothing is known yet. */
  find(id: string): GroupView | undefined {
    const group = this.#groups.get(id);
    return group === undefined || !this.#isKnown(group.pool) ? undefined : this.#describe(group);
  }

  /** The id of the group to which machines of this pool and size belong; undefined for a pool not in the config. */
  idFor(pool: string, size: MachineSize): string | undefined {
    return this.#groupsByPool.get(pool)?.find((group) => group.contains(size))?.id;
  }

  require(id: string): NodeGroup {
    const group = this.#groups.get(id);
    if (group === undefined) throw new NotFound('POOL_NOT_FOUND', `no node group ${quoteId(id)}`);
    if (this.#isKnown(group.pool)) return group;
    const regions = group.pool.regions.join(', ');
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
    return this.#summarize(this.require(id)).targetSize;
  }

  instances(id: string): NodeGroupNodesResponse {
    const group = this.require(id);
    const summary = this.#summarize(group);
    summary.instances ??= this.#instanceLists.list(group);
    return summary.instances;
  }

  /** How many more machines fit; undefined before the first count. */
  headroom(id: string): number | undefined {
    const counted = this.#fleet.forecast.headroom(id);
    if (counted === undefined) return undefined;
    const group = this.require(id);
    if (!this.isReadWithin(group.pool, HEADROOM_MAX_AGE_MS)) return 0;
    return Math.max(0, counted.machines - this.#countClaims(group, counted));
  }

  /** Members that use up headroom since it was counted, placed or not. */
  #countClaims(group: NodeGroup, headroom: Headroom): number {
    const summary = this.#summarize(group);
    if (summary.claims?.headroom === headroom) return summary.claims.count;
    const isNew = ({ phase, placedAt = 0 }: Member) =>
      phase === undefined || phase === 'requested' || placedAt > headroom.countedAt;
    const count = this.#fleet.view.index
      .membersOf(group.pool.name)
      .filter((member) => isNew(member) && !headroom.waiting.has(member.id))
      .reduce((sum, member) => sum + claimOf(member.size, group.pool.size), 0);
    summary.claims = { headroom, count };
    return count;
  }

  /** Whether one of the group's regions was read at most `maxAgeMs` ago. */
  isReadWithin({ regions }: PoolConfig, maxAgeMs: number): boolean {
    const since = this.#clock.now() - maxAgeMs;
    return regions.some((region) => (this.#fleet.forecast.takenAt(region) ?? -Infinity) >= since);
  }

  /** The maximum is never below the target: the autoscaler would delete machines. */
  #describe(group: NodeGroup): GroupView {
    const { id, pool } = group;
    const { targetSize, memberCount, allowed } = this.#summarize(group);
    const headroom = this.headroom(id);
    const fits = memberCount + Math.min(allowed, headroom ?? allowed);
    const maxSize = Math.max(targetSize, mayOffer(pool, fits) ? fits : 0);
    return {
      id,
      minSize: this.#minSize(group),
      maxSize,
      debug: this.#debug(group, targetSize, headroom),
    };
  }

  /**
   * What the other groups lack to the minimum of the pool. Of a group that is not the default at most its own machines:
   * an autoscaler that enforces minima would fill every group.
   */
  #minSize(group: NodeGroup): number {
    const { memberCount, otherCount } = this.#summarize(group);
    const lacking = Math.max(0, group.pool.limits.min - otherCount);
    return group.isDefault ? lacking : Math.min(memberCount, lacking);
  }

  #debug({ id, pool }: NodeGroup, targetSize: number, headroom: number | undefined): string {
    const isOutdated = headroom !== undefined && !this.isReadWithin(pool, HEADROOM_MAX_AGE_MS);
    const reason = isOutdated
      ? 'its hosts cannot be read'
      : this.#fleet.forecast.headroom(id)?.reason;
    const text = headroom === undefined ? 'headroom not counted yet' : `headroom for ${headroom}`;
    return `${id} (${pool.limits.min}-${maxMachines(pool)}, target ${targetSize}, ${reason ?? text})`;
  }

  #summarize({ id, pool, contains }: NodeGroup): GroupSummary {
    const { index } = this.#fleet.view;
    const version = index.version(pool.name);
    const known = this.#summaries.get(id);
    if (known?.version === version) return known;
    const all = index.membersOf(pool.name);
    const memberCount = all.filter(({ size }) => contains(size)).length;
    const failed = index
      .machinesOf(pool.name)
      .filter((one) => one.failure !== undefined && contains(one.size))
      .filter((machine) => isUnacknowledgedFailure(machine, index.isDeletionRequested(machine.id)));
    const summary = {
      version,
      memberCount,
      otherCount: all.length - memberCount,
      allowed: countAllowed(pool, { members: all, count: pool.limits.max, size: pool.size }),
      targetSize: memberCount + failed.length,
      instances: undefined,
      claims: undefined,
    };
    this.#summaries.set(id, summary);
    return summary;
  }
}

/** How many machines of this group's size a machine uses up: at least one, as it has a VM id of its own. */
function claimOf(claimed: MachineSize, size: MachineSize): number {
  const { cpu, memoryBytes } = claimed;
  return Math.max(1, Math.ceil(cpu / size.cpu), Math.ceil(memoryBytes / size.memoryBytes));
}

/** A group with zeroOrMaxNodeScaling grows from zero to its maximum in one step, so a smaller maximum is useless. */
function mayOffer(pool: PoolConfig, fits: number): boolean {
  return pool.clusterAutoscaler.zeroOrMaxNodeScaling !== true || fits === maxMachines(pool);
}

/** Ids come from the client: any content, any length. */
function quoteId(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

// The instances of a group, already encoded. The autoscaler lists all of them in every loop although few have changed.
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
  list({ pool, contains }: NodeGroup): NodeGroupNodesResponse {
    const { index } = this.#view;
    return buildResponse([
      ...requestedInstances({ pool, contains }, this.#view).map(encodeInstance),
      ...index
        .machinesOf(pool.name)
        .filter(({ size }) => contains(size))
        .map((one) => this.#encode(one, index.isDeletionRequested(one.id))),
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
