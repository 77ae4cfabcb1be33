// SPDX-License-Identifier: Apache-2.0
// Node groups: the pools with their limits as they are now. What was worked out from a pool's records is kept until
// they change, since the autoscaler asks for it again and again.
import type { Headroom, Member } from '../../fleet/index.ts';
import type { Clock } from '../../ports/clock.ts';
import { NotFound, Unreachable } from '../../ports/errors.ts';
import type { FleetSide } from '../fleet-side.ts';
import type { NodeGroupNodesResponse } from '../gen/externalgrpc/cloud_provider_pb.js';
import type { FaceSettings, GroupSettings } from '../settings.ts';
import { InstanceLists } from './instance-lists.ts';
import { isUnnoticedFailure } from './instances.ts';

export interface GroupView {
  readonly id: string;
  readonly minSize: number;
  readonly maxSize: number;
  readonly debug: string;
}

interface Kept {
  readonly version: number;
  readonly members: number;
  /** Members, and creations that failed until the autoscaler has taken note. */
  readonly target: number;
  instances: NodeGroupNodesResponse | undefined;
  newcomers: { readonly room: Headroom; readonly count: number } | undefined;
}

/** Longer ago, what was seen of the hosts is no room to offer: where they are silent, nothing can be made. */
const ROOM_HOLDS_MS = 45_000;

export interface GroupParts {
  readonly fleet: Pick<FleetSide, 'view' | 'forecast'>;
  readonly settings: FaceSettings;
  readonly clock: Pick<Clock, 'now'>;
}

export class Groups {
  readonly #fleet: GroupParts['fleet'];
  readonly #clock: GroupParts['clock'];
  readonly #settings: ReadonlyMap<string, GroupSettings>;
  readonly #kept = new Map<string, Kept>();
  readonly #lists: InstanceLists;

  constructor({ fleet, settings, clock }: GroupParts) {
    this.#fleet = fleet;
    this.#clock = clock;
    this.#lists = new InstanceLists(fleet.view);
    this.#settings = new Map(settings.groups.map((group) => [group.name, group]));
  }

  all(): readonly GroupView[] {
    const known = [...this.#settings.values()].filter((group) => this.#isKnown(group));
    return known.map((group) => this.#view(group));
  }

  /** Undefined for a pool that is not, or no longer, in the config, and for one of which nothing is known yet. */
  find(id: string): GroupView | undefined {
    const group = this.#settings.get(id);
    return group === undefined || !this.#isKnown(group) ? undefined : this.#view(group);
  }

  settings(id: string): GroupSettings {
    const group = this.#settings.get(id);
    if (group === undefined) throw new NotFound('POOL_NOT_FOUND', `no node group ${quoted(id)}`);
    if (this.#isKnown(group)) return group;
    const regions = group.regions.join(', ');
    throw new Unreachable(
      'VIEW_STALE',
      `nothing is known of node group ${id}: ${regions} not read yet`,
    );
  }

  /**
   * Whether one of its regions has been read, or the records know something of it. After they were lost, a pool whose
   * regions cannot be read would look empty, and its machines would be ordered again elsewhere.
   */
  #isKnown({ name, regions }: GroupSettings): boolean {
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
    return this.#keep(this.settings(id)).target;
  }

  instances(id: string): NodeGroupNodesResponse {
    const kept = this.#keep(this.settings(id));
    kept.instances ??= this.#lists.of(id);
    return kept.instances;
  }

  /** For how many more there is room; undefined while nobody knows. */
  roomLeft(id: string): number | undefined {
    const room = this.#fleet.forecast.headroom(id);
    if (room === undefined) return undefined;
    const group = this.settings(id);
    if (!this.isSeen(group, ROOM_HOLDS_MS)) return 0;
    return Math.max(0, room.machines - this.#newcomers(group, room));
  }

  /** How many take of the room since it was counted, whether they have their places by now or not. */
  #newcomers(group: GroupSettings, room: Headroom): number {
    const kept = this.#keep(group);
    if (kept.newcomers?.room === room) return kept.newcomers.count;
    const isNew = ({ phase, placedAt = 0 }: Member) =>
      phase === undefined || phase === 'requested' || placedAt > room.countedAt;
    const count = this.#fleet.view.index
      .membersOf(group.name)
      .filter((member) => isNew(member) && !room.waiting.has(member.id)).length;
    kept.newcomers = { room, count };
    return count;
  }

  /** Whether one of its regions has been seen within that time. */
  isSeen({ regions }: GroupSettings, withinMs: number): boolean {
    const since = this.#clock.now() - withinMs;
    return regions.some((region) => (this.#fleet.forecast.takenAt(region) ?? -Infinity) >= since);
  }

  /** Never below the target, which would make the autoscaler take machines away. */
  #view(group: GroupSettings): GroupView {
    const { target, members } = this.#keep(group);
    const left = this.roomLeft(group.name);
    const fits = left === undefined ? group.max : Math.min(group.max, members + left);
    const maxSize = Math.max(target, isEnough(group, fits) ? fits : 0);
    return { id: group.name, minSize: group.min, maxSize, debug: this.#debug(group, target, left) };
  }

  #debug(group: GroupSettings, target: number, left: number | undefined): string {
    const { name, min, max } = group;
    const isSilent = left !== undefined && !this.isSeen(group, ROOM_HOLDS_MS);
    const reason = isSilent
      ? 'its hosts cannot be read'
      : this.#fleet.forecast.headroom(name)?.reason;
    const room = left === undefined ? 'room not counted yet' : `room for ${left} more`;
    return `${name} (${min}-${max}, target ${target}, ${reason ?? room})`;
  }

  #keep({ name }: GroupSettings): Kept {
    const { index } = this.#fleet.view;
    const version = index.version(name);
    const known = this.#kept.get(name);
    if (known?.version === version) return known;
    const members = index.membersOf(name);
    const failed = index
      .machinesOf(name)
      .filter((one) => one.failure !== undefined)
      .filter((machine) => isUnnoticedFailure(machine, index.isDeletionRequested(machine.id)));
    const kept = {
      version,
      members: members.length,
      target: members.length + failed.length,
      instances: undefined,
      newcomers: undefined,
    };
    this.#kept.set(name, kept);
    return kept;
  }
}

/** Where the autoscaler grows a group only from none to all, it takes the maximum for all: there are all of them or none. */
function isEnough({ options, max }: GroupSettings, fits: number): boolean {
  return options.zeroOrMaxNodeScaling !== true || fits === max;
}

/** Ids come from outside and may be anything of any length. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
