// SPDX-License-Identifier: Apache-2.0
// Computes for how many more machines of each pool there are hosts, VM ids and addresses, at the end of a pass.
import { countFreeSlots, vmIdHoldOf } from '../../placement/index.ts';
import { countAllowed } from '../../pools/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { knownNodes } from '../context/cluster-reading.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { takenInView, vmIdsOfNodes } from '../context/taken.ts';
import { joinRefusal } from '../nodes/can-join.ts';
import { freeAddresses } from './addresses.ts';
import { backoffOf } from './backoff.ts';
import type { CapacityForecast, Headroom } from './capacity-forecast.ts';
import { placementRequest, sourceOf } from './place.ts';
import { WaitingMachines } from './waiting-machines.ts';

const COMPUTE_INTERVAL_MS = 5_000;
/** The headroom of a region that was read this recently stays as it is. */
const RECENT_MS = 60_000;

export async function updateForecast(
  context: ReconcileContext,
  forecast: CapacityForecast,
): Promise<void> {
  const ageMs = context.now - forecast.forecastAt;
  // A negative age means that the clock was set back.
  if (ageMs >= 0 && ageMs < COMPUTE_INTERVAL_MS) return;
  forecast.forecastAt = context.now;
  const ids = new Map<string, number>();
  for (const view of context.views.values()) ids.set(view.region, countFreeIds(context, view));
  await context.yieldToEventLoop();
  const waitingMachines = await WaitingMachines.of(context, ids);
  for (const pool of Object.values(context.settings.pools)) {
    if (wasReadRecently(context, pool, forecast)) continue;
    forecast.setHeadroom(pool.name, await computeHeadroom(context, pool, waitingMachines));
    await context.yieldToEventLoop();
  }
  forecast.notify();
}

function wasReadRecently(
  context: ReconcileContext,
  pool: PoolSettings,
  forecast: CapacityForecast,
): boolean {
  if (forecast.headroom(pool.name) === undefined) return false;
  return pool.regions.some((region) => {
    const takenAt = forecast.takenAt(region);
    return (
      !context.views.has(region) && takenAt !== undefined && context.now - takenAt <= RECENT_MS
    );
  });
}

async function computeHeadroom(
  context: ReconcileContext,
  pool: PoolSettings,
  waitingMachines: WaitingMachines,
): Promise<Headroom> {
  const backoff = backoffOf(context, pool.name);
  if (backoff !== undefined) return noHeadroom(context, backoff.message);
  const refused = joinRefusal(context, pool);
  // A stale view is temporary; missing access to the cluster is not.
  if (refused !== undefined && context.clusterReading.kind !== 'stale')
    return noHeadroom(context, refused.message);
  const members = context.records.membersOf(pool.name);
  const { size, limits } = pool;
  const allowed = countAllowed(pool, { members, count: limits.max, size });
  const waiting = waitingMachines.waitingOf(pool.name);
  if (allowed === 0) return { ...noHeadroom(context, 'the pool is at its limits'), waiting };
  let machines = 0;
  let reason = 'the hosts of the pool cannot be read';
  for (const name of pool.regions) {
    const view = context.views.get(name);
    if (view === undefined) continue;
    const atMost = allowed - machines;
    const headroom = await computeRegionHeadroom(context, { view, pool, waitingMachines, atMost });
    machines += headroom.machines;
    reason = headroom.reason ?? 'no host has capacity for another machine';
  }
  const countedAt = context.now;
  return { machines, countedAt, waiting, reason: machines === 0 ? reason : undefined };
}

function noHeadroom({ now: countedAt }: ReconcileContext, reason: string): Headroom {
  return { machines: 0, countedAt, waiting: new Set(), reason };
}

interface Counting {
  readonly view: RegionView;
  readonly pool: PoolSettings;
  readonly waitingMachines: WaitingMachines;
  readonly atMost: number;
}

async function computeRegionHeadroom(
  context: ReconcileContext,
  { view, pool, waitingMachines, atMost }: Counting,
): Promise<Pick<Headroom, 'machines' | 'reason'>> {
  const name = view.region;
  const where = { region: context.region(name), view, pool };
  const ids = Math.min(atMost, waitingMachines.freeIds(name));
  if (ids <= 0) return { machines: 0, reason: undefined };
  const held = waitingMachines.addresses(name);
  const addresses = await freeAddresses(context, where, { held, atMost: ids });
  if (addresses.count === 0) return { machines: 0, reason: addresses.reason };
  const source = await sourceOf(context, where);
  const request = placementRequest({ ...where, source }, pool.size);
  const { total } = countFreeSlots(request, waitingMachines.facts(view), addresses.count);
  return { machines: total, reason: undefined };
}

/** VM ids in the range that are not in the view, not held by a machine or its cool-down, and not named by a Node. */
function countFreeIds(context: ReconcileContext, view: RegionView): number {
  const { from, to } = context.region(view.region).vmIds;
  const taken = new Set<number>();
  const take = (id: number) => {
    if (id >= from && id <= to) taken.add(id);
  };
  for (const id of takenInView(view).vmIds) take(id);
  for (const id of vmIdsOfNodes(knownNodes(context.clusterReading), view.region)) take(id);
  for (const machine of context.records.machines) {
    const { placement } = machine;
    if (placement?.region !== view.region || taken.has(placement.vmId)) continue;
    if (vmIdHoldOf(machine, context.now) !== undefined) take(placement.vmId);
  }
  return to - from + 1 - taken.size;
}
