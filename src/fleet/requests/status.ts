// SPDX-License-Identifier: Apache-2.0
// The fleet's status: from the records alone, or from the records and one reading of Proxmox.
import type { Drain } from '../../model/drain.ts';
import { RECONCILE_LEASE } from '../../model/lease.ts';
import type { Machine } from '../../model/machine.ts';
import type { LostMachines, PoolBackoff, PoolPause } from '../../model/pool.ts';
import { checkLimits, type Member, nodeGroupsOf } from '../../pools/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { FleetOptions } from '../context/options.ts';
import { readRegionViews } from '../context/region-views.ts';
import { type RemovedPool, removedPools } from '../context/removed-pools.ts';
import type { PoolSettings } from '../context/settings.ts';
import type { RecordCache } from '../records/record-cache.ts';
import { isVmMissing } from './member-health.ts';

export interface PoolStatus {
  readonly name: string;
  readonly limits: PoolSettings['limits'];
  /** Why the limits allow no machine of any size more; undefined while they do. */
  readonly atLimit: string | undefined;
  /** Machines that exist and are neither being drained nor deleted, plus those requested and not yet created. */
  readonly target: number;
  readonly ready: number;
  /** One per size, if the pool has several node groups; else empty. */
  readonly nodeGroups: readonly Pick<PoolStatus, 'name' | 'target' | 'ready'>[];
  /** Regions that could not be read, with the reason; empty also when none was to be read. */
  readonly unread: Readonly<Record<string, string>>;
  /** Ready machines whose VM is gone. They are neither in `ready` nor in `target`. */
  readonly missing: number;
  readonly failed: number;
  readonly deleting: number;
  /** Only while it lasts. */
  readonly backoff: PoolBackoff | undefined;
  /** Only while it lasts. */
  readonly pause: PoolPause | undefined;
  /** Machines that seem lost and are not deleted until a person confirms it. */
  readonly lost: LostMachines | undefined;
}

export interface FleetStatus {
  readonly pools: readonly PoolStatus[];
  readonly removedPools: readonly RemovedPool[];
  readonly machines: readonly Machine[];
  /** Current drains, and those that were over lately. */
  readonly drains: readonly Drain[];
  readonly openIntents: number;
  /** Holder of the reconcile lease; undefined when it is free. */
  readonly driver: string | undefined;
}

export interface StatusOptions {
  /** Reads Proxmox too: a VM that was deleted since the last driver ran is then known to be missing. */
  readonly readsProxmox?: boolean;
}

/** A person waits for the result. */
const MAX_READ_MS = 10_000;

const NOT_READ = { views: new Map<string, RegionView>(), stale: {} };

/** The default size is the smallest of a range, but only the first of a list. */
function refusalOfOneMore(pool: PoolSettings, members: readonly Member[]): string | undefined {
  const sizes = pool.sizes.kind === 'span' ? [pool.size] : pool.sizes.sizes;
  const refusals = sizes.map((size) => checkLimits(pool, { members, count: 1, size }));
  return refusals.includes(undefined) ? undefined : refusals[0]?.message;
}

function countGroups(pool: PoolSettings, members: readonly Member[]): PoolStatus['nodeGroups'] {
  if (pool.nodeGroups.length === 0) return [];
  return nodeGroupsOf(pool).map(({ id, contains }) => {
    const own = members.filter(({ size }) => contains(size));
    const ready = own.filter(({ phase }) => phase === 'ready').length;
    return { name: id, target: own.length, ready };
  });
}

/** A reading decides; without one the record of the last driver. */
function isMissingIn(machine: Machine, views: ReadonlyMap<string, RegionView>): boolean {
  const isRecorded = machine.phase === 'ready' && machine.missingSince !== undefined;
  return isVmMissing(machine, views) ?? isRecorded;
}

export async function readStatus(
  options: FleetOptions,
  cache: RecordCache,
  { readsProxmox = false }: StatusOptions = {},
): Promise<FleetStatus> {
  const { store, clock, settings } = options;
  const { views, stale } = readsProxmox ? await readRegionViews(options, MAX_READ_MS) : NOT_READ;
  await cache.refresh();
  const isMissing = (machine: Machine) => isMissingIn(machine, views);
  const machines = cache.machines.all();
  const lease = await store.leases.read(RECONCILE_LEASE);
  const now = clock.now();
  const pools = Object.values(settings.pools).map((pool): PoolStatus => {
    const { name, limits } = pool;
    const own = cache.index.machinesOf(name);
    const count = (phase: Machine['phase']) => own.filter((one) => one.phase === phase).length;
    const isPresent = ({ id }: Pick<Machine, 'id'>) => {
      const machine = cache.machines.get(id);
      return machine === undefined || !isMissing(machine);
    };
    const members = cache.index.membersOf(name).filter(isPresent);
    const missing = own.filter(isMissing).length;
    const { backoff, lost, pause } = cache.pools.get(name) ?? {};
    const heldBack = lost?.machines.filter((id) => cache.machines.get(id)?.phase === 'ready') ?? [];
    return {
      name,
      limits,
      atLimit: refusalOfOneMore(pool, members),
      target: members.length,
      ready: count('ready') - missing,
      nodeGroups: countGroups(pool, members),
      missing,
      unread: Object.fromEntries(
        Object.entries(stale).filter(([region]) => pool.regions.includes(region)),
      ),
      failed: count('failed') + count('kept'),
      deleting: count('deleting') + count('draining'),
      backoff: backoff !== undefined && backoff.until > now ? backoff : undefined,
      pause: pause !== undefined && pause.until > now ? pause : undefined,
      lost: lost !== undefined && heldBack.length > 0 ? { ...lost, machines: heldBack } : undefined,
    };
  });
  return {
    pools,
    removedPools: removedPools(machines, settings.pools, isMissing),
    machines: machines.toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1)),
    drains: cache.drains.all(),
    openIntents: cache.intents.all().filter(({ state }) => state === 'open').length,
    driver: lease !== undefined && lease.expiresAt > now ? lease.holder : undefined,
  };
}
