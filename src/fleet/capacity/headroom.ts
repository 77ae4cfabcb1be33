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
const UNSEEN_FOR_MS = 60_000;

export async function updateForecast(
  context: ReconcileContext,
  outlook: CapacityForecast,
): Promise<void> {
  const ageMs = context.now - outlook.forecastAt;
  // A negative age means that the clock was set back.
  if (ageMs >= 0 && ageMs < COMPUTE_INTERVAL_MS) return;
  outlook.forecastAt = context.now;
  const ids = new Map<string, number>();
  for (const view of context.views.values()) ids.set(view.region, countFreeIds(context, view));
  await context.yieldToEventLoop();
  const queue = await WaitingMachines.of(context, ids);
  for (const pool of Object.values(context.settings.pools)) {
    if (isUnseenForAMoment(context, pool, outlook)) continue;
    outlook.setHeadroom(pool.name, await roomOf(context, pool, queue));
    await context.yieldToEventLoop();
  }
  outlook.notify();
}

function isUnseenForAMoment(
  context: ReconcileContext,
  pool: PoolSettings,
  outlook: CapacityForecast,
): boolean {
  if (outlook.headroom(pool.name) === undefined) return false;
  return pool.regions.some((region) => {
    const takenAt = outlook.takenAt(region);
    return (
      !context.views.has(region) && takenAt !== undefined && context.now - takenAt <= UNSEEN_FOR_MS
    );
  });
}

async function roomOf(
  context: ReconcileContext,
  pool: PoolSettings,
  queue: WaitingMachines,
): Promise<Headroom> {
  const backoff = backoffOf(context, pool.name);
  if (backoff !== undefined) return noRoom(context, backoff.message);
  const refused = joinRefusal(context, pool);
  // A stale view is temporary; missing access to the cluster is not.
  if (refused !== undefined && context.clusterReading.kind !== 'stale')
    return noRoom(context, refused.message);
  const members = context.records.membersOf(pool.name);
  const { size, limits } = pool;
  const allowed = countAllowed(pool, { members, count: limits.max, size });
  const waiting = queue.waitingOf(pool.name);
  if (allowed === 0) return { ...noRoom(context, 'the pool is at its limits'), waiting };
  let machines = 0;
  let reason = 'the hosts of the pool cannot be read';
  for (const name of pool.regions) {
    const view = context.views.get(name);
    if (view === undefined) continue;
    const atMost = allowed - machines;
    const room = await roomIn(context, { view, pool, queue, atMost });
    machines += room.machines;
    reason = room.reason ?? 'no host has capacity for another machine';
  }
  const countedAt = context.now;
  return { machines, countedAt, waiting, reason: machines === 0 ? reason : undefined };
}

function noRoom({ now: countedAt }: ReconcileContext, reason: string): Headroom {
  return { machines: 0, countedAt, waiting: new Set(), reason };
}

interface Counting {
  readonly view: RegionView;
  readonly pool: PoolSettings;
  readonly queue: WaitingMachines;
  readonly atMost: number;
}

async function roomIn(
  context: ReconcileContext,
  { view, pool, queue, atMost }: Counting,
): Promise<Pick<Headroom, 'machines' | 'reason'>> {
  const name = view.region;
  const where = { region: context.region(name), view, pool };
  const ids = Math.min(atMost, queue.freeIds(name));
  if (ids <= 0) return { machines: 0, reason: undefined };
  const held = queue.addresses(name);
  const addresses = await freeAddresses(context, where, { held, atMost: ids });
  if (addresses.count === 0) return { machines: 0, reason: addresses.reason };
  const source = await sourceOf(context, where);
  const request = placementRequest({ ...where, source }, pool.size);
  const { total } = countFreeSlots(request, queue.facts(view), addresses.count);
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
