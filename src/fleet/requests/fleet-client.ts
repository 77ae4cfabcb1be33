// SPDX-License-Identifier: Apache-2.0
// What front ends call: requests, and the records to read. Any number of clients may use one store, in threads and
// processes of their own; the driver carries the requests out.

import { formatCount } from '../../model/format-text.ts';
import type { DrainIntent, Intent } from '../../model/intent.ts';
import type { Lease } from '../../model/lease.ts';
import type { HostRef, MachineId, MachineSize } from '../../model/machine.ts';
import { roleGroup, type VmRequest } from '../../model/role.ts';
import {
  checkLimits,
  type GrowthRequest,
  type Member,
  type NodeGroup,
  nodeGroupsOf,
  type PoolLimits,
  sortForDeletion,
} from '../../pools/index.ts';
import type { Clock } from '../../ports/clock.ts';
import { InvalidRequest, NoCapacity, NotFound } from '../../ports/errors.ts';
import { throwIfAborted } from '../../ports/in-flight-calls.ts';
import type { Random } from '../../ports/random.ts';
import { DEFER_MS, type Store } from '../../ports/store.ts';
import { type FleetView, RecordCache } from '../records/record-cache.ts';
import { newMachineId } from '../records/records.ts';
import type { HealthOf, ReadHealth } from './member-health.ts';

export interface FleetClient {
  /** The records in memory, read-only. Writes of other processes are visible after `refresh`. */
  readonly view: FleetView;
  /** Requests more machines. Throws NoCapacity/POOL_AT_MAXIMUM beyond the pool's limits; then nothing is requested. */
  request(pool: string, count: number, why: RequestReason): Promise<Accepted>;
  /** Requests hand-made VMs. Where each is created is decided by the driver. */
  requestVms(request: VmsRequest): Promise<Accepted>;
  /** Requests one machine that is no member of the pool and is deleted once it is ready. */
  selftest(pool: string, why: RequestReason): Promise<Accepted>;
  /** Requests the deletion of these machines. */
  remove(machines: readonly MachineId[], why: RequestReason): Promise<Accepted>;
  /** Requests the creations or deletions that bring the pool to this size. */
  scaleTo(pool: string, size: number, why: ScaleReason): Promise<Accepted>;
  /**
   * Requests that the machines' Nodes are drained and the machines then deleted. A machine without a Node is deleted at
   * once. A drain that is undone leaves its machine `ready`; `view.drains` has the reason.
   */
  drain(request: DrainRequest): Promise<Accepted>;
  /** Requests that drains are undone. Has no effect on machines whose drain is done. */
  cancelDrain(machines: readonly MachineId[], why: RequestReason): Promise<Accepted>;
  /** Cancels these creations, if nothing of them exists on Proxmox yet. */
  cancelMachines(machines: readonly MachineId[], why: RequestReason): Promise<Accepted>;
  /** Requests that the pause of the pool ends. */
  resume(pool: string, why: RequestReason): Promise<Accepted>;
  /** Cancels up to `count` creations of which nothing exists on Proxmox yet. */
  cancel(pool: string, count: number, why: RequestReason): Promise<Accepted>;
}

export interface FleetClientOptions extends RequestOptions {
  readonly store: Store;
}

export function createFleetClient(
  options: FleetClientOptions,
  cache: RecordCache = new RecordCache(options.store),
): FleetClient {
  const requests = new Requests(options, cache);
  return {
    view: cache,
    request: (pool, count, why) => requests.request(pool, count, why),
    requestVms: (request) => requests.requestVms(request),
    selftest: (pool, why) => requests.selftest(pool, why),
    remove: (machines, why) => requests.remove(machines, why),
    scaleTo: (pool, size, why) => requests.scaleTo(pool, size, why),
    drain: (request) => requests.drain(request),
    cancelDrain: (machines, why) => requests.cancelDrain(machines, why),
    cancel: (pool, count, why) => requests.cancel(pool, count, why),
    cancelMachines: (machines, why) => requests.cancelMachines(machines, why),
    resume: (pool, why) => requests.resume(pool, why),
  };
}

// Requests of front ends. Each call writes one durable intent; the driver carries it out.

export interface RequestReason {
  /** The requesting front end: `cli`, `autoscaler`, `cluster-autoscaler`. */
  readonly by: string;
  /** One sentence. */
  readonly reason: string;
  /** Overrides the pool's size. */
  readonly size?: MachineSize;
  /** The only host that new machines may be placed on. */
  readonly host?: HostRef | undefined;
  /**
   * For front ends in the driver's process: the request is refused with LostLeadership when this lease is not current any
   * more. A crash right after the request may lose it, unless `isDurable`.
   */
  readonly fence?: Lease | undefined;
  readonly isDurable?: boolean;
  /** Limits the request to this node group of the pool: its size, and only its machines. */
  readonly nodeGroup?: string | undefined;
  /** Aborted before the intent is durable: nothing is requested. */
  readonly signal?: AbortSignal | undefined;
}

export interface VmsRequest extends Pick<RequestReason, 'by' | 'reason' | 'host' | 'signal'> {
  readonly role: string;
  readonly count: number;
  readonly size: MachineSize;
  readonly vm: VmRequest;
}

export interface ScaleReason extends RequestReason {
  /** Drains the machines before their deletion. Absent: deletes them at once. */
  readonly drain?: DrainSettings | undefined;
}

export interface DrainSettings {
  /** Absent: the pool's `scaleDown.drainTimeout`. */
  readonly timeoutMs?: number | undefined;
}

export interface DrainRequest extends Omit<RequestReason, 'size'>, DrainSettings {
  readonly machines: readonly {
    readonly id: MachineId;
    /** Absent: the reason of the request. */
    readonly reason?: string;
  }[];
}

interface RequestOptions {
  readonly clock: Pick<Clock, 'now'>;
  readonly random: Random;
  /** Those of the config now. */
  readonly pools: () => Readonly<Record<string, PoolLimits>>;
  /** For the choice of machines to delete; absent: only their records decide. */
  readonly readHealth?: ReadHealth | undefined;
}

export interface Accepted {
  /** Undefined when there was nothing to do. */
  readonly intent: string | undefined;
  readonly machines: readonly MachineId[];
}

const NOTHING: Accepted = { intent: undefined, machines: [] };

/** Handles one call at a time, so that two calls together never exceed a limit. */
class Requests {
  readonly #options: RequestOptions;
  readonly #cache: RecordCache;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: RequestOptions, cache: RecordCache) {
    this.#options = options;
    this.#cache = cache;
  }

  request(name: string, count: number, why: RequestReason): Promise<Accepted> {
    return this.#serialized(why, () => this.#request(name, count, why));
  }

  requestVms(request: VmsRequest): Promise<Accepted> {
    const { role, count, size, host, vm } = request;
    return this.#serialized(request, async () => {
      if (!Number.isInteger(count) || count < 1) throw notACount(count);
      const machines = this.#newMachines(count);
      const common = this.#common(roleGroup(role), request);
      const intent = { ...common, kind: 'create', machines, size, vm } as const;
      return this.#write({ ...intent, ...(host !== undefined && { host }) }, request);
    });
  }

  /** One machine beside the pool's members and limits. */
  selftest(name: string, why: RequestReason): Promise<Accepted> {
    return this.#serialized(why, () => {
      const { pool } = this.#group(name, why);
      const machines = this.#newMachines(1);
      const size = why.size ?? pool.size;
      const common = this.#common(pool.name, why);
      return this.#write({ ...common, kind: 'create', machines, size, isSelftest: true }, why);
    });
  }

  /** Accepts machines of a pool that is no longer in the config, and machines that have no record yet. */
  remove(ids: readonly MachineId[], why: RequestReason): Promise<Accepted> {
    return this.#serialized(why, () => this.#remove(ids, why));
  }

  drain(request: DrainRequest): Promise<Accepted> {
    return this.#serialized(request, () => this.#drain(request));
  }

  cancelDrain(ids: readonly MachineId[], why: RequestReason): Promise<Accepted> {
    return this.#serialized(why, async () => {
      const pool = this.#poolOf(ids);
      if (pool === undefined) return NOTHING;
      const common = this.#common(pool, why);
      return this.#write({ ...common, kind: 'cancel-drain', machines: [...ids] }, why);
    });
  }

  scaleTo(name: string, size: number, why: ScaleReason): Promise<Accepted> {
    return this.#serialized(why, () => this.#scaleTo(name, size, why));
  }

  cancel(name: string, count: number, why: RequestReason): Promise<Accepted> {
    return this.#serialized(why, () => this.#cancel(name, count, why));
  }

  cancelMachines(ids: readonly MachineId[], why: RequestReason): Promise<Accepted> {
    return this.#serialized(why, async () => {
      const pool = this.#poolOf(ids);
      if (pool === undefined) return NOTHING;
      return this.#write({ ...this.#common(pool, why), kind: 'cancel', machines: [...ids] }, why);
    });
  }

  resume(name: string, why: RequestReason): Promise<Accepted> {
    return this.#serialized(why, async () => {
      const { name: pool } = this.#group(name, why).pool;
      return this.#write({ ...this.#common(pool, why), kind: 'resume', machines: [] }, why);
    });
  }

  async #request(name: string, count: number, why: RequestReason): Promise<Accepted> {
    if (!Number.isInteger(count) || count < 0) throw notACount(count);
    const members = this.#cache.index.limitedMembersOf(name);
    return this.#create(this.#group(name, why).pool, { members, count }, why);
  }

  async #create(
    pool: PoolLimits,
    { members, count }: Pick<GrowthRequest, 'members' | 'count'>,
    why: RequestReason,
  ): Promise<Accepted> {
    if (count === 0) return NOTHING;
    const size = why.size ?? pool.size;
    requireWithinLimits(pool, { members, count, size });
    const machines = this.#newMachines(count);
    const { host } = why;
    const intent = { ...this.#common(pool.name, why), kind: 'create', machines, size } as const;
    return this.#write({ ...intent, ...(host !== undefined && { host }) }, why);
  }

  #newMachines(count: number): readonly MachineId[] {
    const { random } = this.#options;
    const machines = Array.from({ length: count }, () => newMachineId(random));
    for (const id of machines) this.#cache.requestedHere.add(id);
    return machines;
  }

  async #remove(ids: readonly MachineId[], why: RequestReason): Promise<Accepted> {
    const pool = this.#poolOf(ids);
    if (pool === undefined) return NOTHING;
    return this.#write({ ...this.#common(pool, why), kind: 'delete', machines: [...ids] }, why);
  }

  /** The pool of the first machine; undefined without machines. Throws if one of them does not exist. */
  #poolOf(ids: readonly MachineId[]): string | undefined {
    const { machines, index } = this.#cache;
    const found = ids.map((id) => ({ id, target: machines.get(id) ?? index.requested(id) }));
    const missing = found.find(({ target }) => target === undefined);
    if (missing !== undefined) throw new NotFound('MACHINE_NOT_FOUND', `no machine ${missing.id}`);
    return found[0]?.target?.pool;
  }

  async #drain(request: DrainRequest): Promise<Accepted> {
    const ids = request.machines.map(({ id }) => id);
    const pool = this.#poolOf(ids);
    if (pool === undefined) return NOTHING;
    const reasons = request.machines.flatMap(({ id, reason }) =>
      reason === undefined ? [] : [[id, reason] as const],
    );
    return this.#writeDrain(pool, ids, { ...request, reasons: Object.fromEntries(reasons) });
  }

  #writeDrain(
    pool: string,
    machines: readonly MachineId[],
    why: RequestReason & DrainSettings & Pick<DrainIntent, 'reasons'>,
  ): Promise<Accepted> {
    const { timeoutMs, reasons } = why;
    const intent: DrainIntent = {
      ...this.#common(pool, why),
      kind: 'drain',
      machines,
      ...(reasons !== undefined && { reasons }),
      ...(timeoutMs !== undefined && { timeoutMs }),
    };
    return this.#write(intent, why);
  }

  async #scaleTo(name: string, size: number, why: ScaleReason): Promise<Accepted> {
    const { pool, contains } = this.#group(name, why);
    if (!Number.isInteger(size) || size < 0) throw notACount(size);
    if (size > pool.limits.max) {
      requireWithinLimits(pool, { members: [], count: size, size: why.size ?? pool.size });
    }
    const mayDiffer = size > 0 && this.#cache.index.membersOf(name).length > 0;
    const healthOf = mayDiffer ? await this.#readHealth(why) : undefined;
    const members = this.#existingMembers(name, healthOf);
    const own = members.filter((member) => contains(member.size));
    requireMinimum(pool, members.length - own.length, size);
    if (own.length <= size) {
      const limited = [...members, ...this.#cache.index.drainingOf(name)];
      return this.#create(pool, { members: limited, count: size - own.length }, why);
    }
    const machines = this.#chooseToDelete(own, size, healthOf);
    if (machines.length === 0) return NOTHING;
    if (why.drain !== undefined) return this.#writeDrain(name, machines, { ...why, ...why.drain });
    return this.#write({ ...this.#common(name, why), kind: 'delete', machines }, why);
  }

  async #readHealth({ signal }: RequestReason): Promise<HealthOf | undefined> {
    const healthOf = await this.#options.readHealth?.(signal);
    // Reading regions and cluster may have taken long.
    if (healthOf !== undefined) await this.#cache.refresh();
    return healthOf;
  }

  /** Without the machines whose VM is gone: their records are kept for a while. */
  #existingMembers(name: string, healthOf: HealthOf | undefined): readonly Member[] {
    const { machines, index } = this.#cache;
    const members = index.membersOf(name);
    if (healthOf === undefined) return members;
    return members.filter(({ id }) => healthOf(machines.get(id)).isVmMissing !== true);
  }

  /** The machines beyond `size`, the least useful first. */
  #chooseToDelete(
    members: readonly Member[],
    size: number,
    healthOf: HealthOf | undefined,
  ): readonly MachineId[] {
    const { machines } = this.#cache;
    return sortForDeletion(members, (id) => healthOf?.(machines.get(id)) ?? {})
      .slice(0, Math.max(0, members.length - size))
      .map(({ id }) => id);
  }

  async #cancel(name: string, count: number, why: RequestReason): Promise<Accepted> {
    const { contains } = this.#group(name, why);
    if (!Number.isInteger(count) || count < 0) throw notACount(count);
    const waiting = this.#cache.index
      .membersOf(name)
      .filter((member) => isNotCreated(member) && contains(member.size));
    const machines = sortForDeletion(waiting)
      .slice(0, count)
      .map(({ id }) => id);
    if (machines.length === 0) return NOTHING;
    return this.#write({ ...this.#common(name, why), kind: 'cancel', machines }, why);
  }

  #serialized<T>({ signal }: RequestReason, work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(async () => {
      throwIfAborted(signal);
      await this.#cache.refresh();
      return work();
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  #common(pool: string, { by, reason }: RequestReason) {
    const { clock, random } = this.#options;
    return {
      id: random.uuid(),
      pool,
      requestedAt: clock.now(),
      requestedBy: by,
      reason,
      state: 'open',
    } as const;
  }

  /** The signal is checked for the last time inside the write. */
  async #write(intent: Intent, why: RequestReason): Promise<Accepted> {
    const { signal, fence, isDurable = false } = why;
    const stated = {
      ...intent,
      requestedAt: Math.max(intent.requestedAt, this.#latestRequestAt(intent)),
    };
    // A front end with a lease runs in the driver's process, and requests again what a crash loses.
    const deferMs = fence === undefined || isDurable ? 0 : DEFER_MS;
    const options = { signal, deferMs, ...(fence !== undefined && { fence }) };
    await this.#cache.intents.put(intent.id, stated, options);
    return { intent: intent.id, machines: intent.machines };
  }

  /** A deletion is later than the creation of the same machine, whatever the clocks of two processes say. */
  #latestRequestAt({ machines }: Intent): number {
    const { index } = this.#cache;
    return Math.max(0, ...machines.map((id) => index.requested(id)?.requestedAt ?? 0));
  }

  /** All machines of the pool, unless the request names one of its node groups. */
  #group(
    name: string,
    { nodeGroup }: RequestReason,
  ): Pick<NodeGroup<PoolLimits>, 'pool' | 'contains'> {
    const pool = this.#options.pools()[name];
    if (pool === undefined) throw new NotFound('POOL_NOT_FOUND', `no pool ${name} in the config`);
    if (nodeGroup === undefined) return { pool, contains: () => true };
    const group = nodeGroupsOf(pool).find(({ id }) => id === nodeGroup);
    if (group !== undefined) return group;
    throw new NotFound('POOL_NOT_FOUND', `pool ${name} has no node group ${nodeGroup}`);
  }
}

/** Nothing of the machine exists on a host, and its creation has not begun. */
function isNotCreated({ phase }: Member): boolean {
  return phase === undefined || phase === 'requested' || phase === 'placed';
}

function notACount(count: number): InvalidRequest {
  return new InvalidRequest('REQUEST_INVALID', `${count} is not a number of machines`);
}

function requireMinimum({ name, limits }: PoolLimits, others: number, size: number): void {
  if (others + size >= limits.min) return;
  throw new InvalidRequest(
    'REQUEST_INVALID',
    `pool ${name} keeps at least ${formatCount(limits.min, 'machine')}`,
    {
      hint: `Lower limits.min of the pool in the config, or scale to ${limits.min - others}.`,
    },
  );
}

function requireWithinLimits(pool: PoolLimits, request: GrowthRequest): void {
  const refusal = checkLimits(pool, request);
  if (refusal === undefined) return;
  const { message, requested, max } = refusal;
  throw new NoCapacity('POOL_AT_MAXIMUM', message, { facts: { wanted: requested, max } });
}
