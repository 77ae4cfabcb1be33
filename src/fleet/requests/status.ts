// SPDX-License-Identifier: Apache-2.0
// The fleet's status from the records alone, without a call to Proxmox.
import type { Drain } from '../../model/drain.ts';
import { RECONCILE_LEASE } from '../../model/lease.ts';
import type { Machine } from '../../model/machine.ts';
import type { LostMachines, PoolBackoff, PoolPause } from '../../model/pool.ts';
import type { FleetOptions } from '../context/options.ts';
import { type RemovedPool, removedPools } from '../context/removed-pools.ts';
import type { RecordCache } from '../records/record-cache.ts';

export interface PoolStatus {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Machines that exist and are neither being drained nor deleted, plus those requested and not yet created. */
  readonly target: number;
  readonly ready: number;
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

function isVmMissing({ phase, missingSince }: Machine): boolean {
  return phase === 'ready' && missingSince !== undefined;
}

export async function readStatus(
  { store, clock, settings }: FleetOptions,
  cache: RecordCache,
): Promise<FleetStatus> {
  await cache.refresh();
  const machines = cache.machines.all();
  const lease = await store.leases.read(RECONCILE_LEASE);
  const now = clock.now();
  const pools = Object.values(settings.pools).map(({ name, limits }): PoolStatus => {
    const own = cache.index.machinesOf(name);
    const count = (phase: Machine['phase']) => own.filter((one) => one.phase === phase).length;
    const missing = own.filter(isVmMissing).length;
    const { backoff, lost, pause } = cache.pools.get(name) ?? {};
    const heldBack = lost?.machines.filter((id) => cache.machines.get(id)?.phase === 'ready') ?? [];
    return {
      name,
      ...limits,
      target: cache.index.membersOf(name).length - missing,
      ready: count('ready') - missing,
      missing,
      failed: count('failed'),
      deleting: count('deleting') + count('draining'),
      backoff: backoff !== undefined && backoff.until > now ? backoff : undefined,
      pause: pause !== undefined && pause.until > now ? pause : undefined,
      lost: lost !== undefined && heldBack.length > 0 ? { ...lost, machines: heldBack } : undefined,
    };
  });
  return {
    pools,
    removedPools: removedPools(machines, settings.pools),
    machines: machines.toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1)),
    drains: cache.drains.all(),
    openIntents: cache.intents.all().filter(({ state }) => state === 'open').length,
    driver: lease !== undefined && lease.expiresAt > now ? lease.holder : undefined,
  };
}
