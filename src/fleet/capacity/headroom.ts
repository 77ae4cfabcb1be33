// SPDX-License-Identifier: Apache-2.0
// Computes for how many more machines of each pool there are hosts, VM ids and addresses, at the end of a pass.

import type { HeldAddresses } from '../../model/held-addresses.ts';
import type { Machine } from '../../model/machine.ts';
import {
  chooseHost,
  countFreeSlots,
  HostAllocations,
  listHeadrooms,
  type Placed,
  type RegionFacts,
  type Reservation,
  vmIdHoldOf,
} from '../../placement/index.ts';
import { countAllowed, type NodeGroup, nodeGroupsOf } from '../../pools/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { knownNodes } from '../context/cluster-reading.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { refusedVmIds, takenInView, vmIdsOfNodes } from '../context/taken.ts';
import { settingsOf } from '../context/vm-settings.ts';
import { joinRefusal } from '../nodes/can-join.ts';
import { addressesBeside, freeAddresses } from './addresses.ts';
import { backoffOf } from './backoff.ts';
import type {
  CapacityForecast,
  FleetCapacity,
  Headroom,
  PlacementRefusal,
  RegionCapacity,
} from './capacity-forecast.ts';
import {
  onRequiredHost,
  type PlacementScope,
  placementFacts,
  placementRequest,
  sourceOf,
  unreadTemplate,
} from './place.ts';

const COMPUTE_INTERVAL_MS = 5_000;
/** The headroom of a region that was read this recently stays as it is. */
const RECENT_MS = 60_000;

export async function updateForecast(
  context: ReconcileContext,
  forecast: CapacityForecast,
): Promise<void> {
  const ageMs = context.now - forecast.forecastAt;
  const isForTheseSettings = forecast.settings === context.settings;
  // A negative age means that the clock was set back.
  if (isForTheseSettings && ageMs >= 0 && ageMs < COMPUTE_INTERVAL_MS) return;
  forecast.forecastAt = context.now;
  const waitingMachines = await findWaiting(context);
  const groups = Object.values(context.settings.pools).flatMap(nodeGroupsOf<PoolSettings>);
  for (const group of groups) {
    if (isForTheseSettings && wasReadRecently(context, group, forecast)) continue;
    forecast.setHeadroom(group.id, await computeHeadroom(context, group.pool, waitingMachines));
    await context.yieldToEventLoop();
  }
  forecast.setCapacity(await computeCapacity(context, waitingMachines));
  forecast.settings = context.settings;
  forecast.retainHeadrooms(new Set(groups.map(({ id }) => id)));
  forecast.notify();
}

async function findWaiting(context: ReconcileContext): Promise<WaitingMachines> {
  const ids = new Map<string, number>();
  for (const view of context.views.values()) ids.set(view.region, countFreeIds(context, view));
  await context.yieldToEventLoop();
  return WaitingMachines.of(context, ids);
}

function wasReadRecently(
  context: ReconcileContext,
  { id, pool }: NodeGroup<PoolSettings>,
  forecast: CapacityForecast,
): boolean {
  if (forecast.headroom(id) === undefined) return false;
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
  const members = context.records.limitedMembersOf(pool.name);
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

/** What every region that was read has left for every pool, beside the machines that wait for a place. */
async function computeCapacity(
  context: ReconcileContext,
  waitingMachines: WaitingMachines,
): Promise<FleetCapacity> {
  const pools = Object.values(context.settings.pools);
  const regions: RegionCapacity[] = [];
  for (const view of context.views.values()) {
    const byPool: RegionCapacity['pools'][number][] = [];
    for (const pool of pools) {
      if (!pool.regions.includes(view.region)) continue;
      byPool.push(computePoolCapacity(context, { view, pool, waitingMachines }));
      await context.yieldToEventLoop();
    }
    regions.push({ region: view.region, takenAt: view.takenAt, pools: byPool });
  }
  const counted = new Set(pools.flatMap(({ name }) => [...waitingMachines.waitingOf(name)]));
  return { computedAt: context.now, regions, counted, unplaced: waitingMachines.unplaced };
}

function computePoolCapacity(
  context: ReconcileContext,
  { view, pool, waitingMachines }: Omit<Counting, 'atMost'>,
): RegionCapacity['pools'][number] {
  const where = { region: context.region(view.region), view, pool };
  const ids = Math.max(0, waitingMachines.freeIds(view.region));
  const held = waitingMachines.addresses(view.region);
  const addresses = freeAddresses(context, where, { held, atMost: ids });
  const source = sourceOf(context, where);
  const request = placementRequest({ ...where, source }, pool.size);
  const refusal = joinRefusal(context, pool) ?? unreadTemplate(context, where);
  return {
    pool: pool.name,
    // Without `unreadHosts`: exact readings of storages are made only while machines wait for a place.
    hosts: listHeadrooms(request, waitingMachines.facts(view)).map((host) =>
      refusal === undefined ? host : { ...host, refusal },
    ),
    identities: {
      machines: Math.min(ids, addresses.count),
      reason:
        ids === 0
          ? `region ${view.region} has no free VM id`
          : (addresses.reason ?? `region ${view.region} has ${ids} free VM ids`),
    },
  };
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
  const addresses = freeAddresses(context, where, { held, atMost: ids });
  if (addresses.count === 0) return { machines: 0, reason: addresses.reason };
  const source = sourceOf(context, where);
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
  for (const id of refusedVmIds(context, view.region)) take(id);
  for (const id of vmIdsOfNodes(knownNodes(context.clusterReading), view.region)) take(id);
  for (const machine of context.records.machines) {
    const { placement } = machine;
    if (placement?.region !== view.region || taken.has(placement.vmId)) continue;
    if (vmIdHoldOf(machine, context.now) !== undefined) take(placement.vmId);
  }
  return to - from + 1 - taken.size;
}

// What the machines that wait for a place will use: they were accepted before any request that needs headroom now.
// Each is assigned to a host as if no host were busy; nothing is written.

interface Held {
  readonly allocations: HostAllocations;
  readonly reservations: Reservation[];
  readonly addresses: HeldAddresses[];
}

class WaitingMachines {
  readonly #context: ReconcileContext;
  readonly #held = new Map<string, Held>();
  readonly #waiting = new Map<string, Set<string>>();
  /** Machines that find no place, with the reason. */
  readonly unplaced = new Map<string, PlacementRefusal>();

  /** Free VM ids by region. */
  readonly #ids: ReadonlyMap<string, number>;

  private constructor(context: ReconcileContext, ids: ReadonlyMap<string, number>) {
    this.#context = context;
    this.#ids = ids;
  }

  static async of(
    context: ReconcileContext,
    ids: ReadonlyMap<string, number>,
  ): Promise<WaitingMachines> {
    const queue = new WaitingMachines(context, ids);
    const waiting = context.records.index
      .inPhase('requested')
      .filter(
        ({ id, pool }) =>
          !context.records.isDeletionRequested(id) && backoffOf(context, pool) === undefined,
      )
      .toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1));
    for (const machine of waiting) {
      await queue.#hold(machine);
      await context.yieldToEventLoop();
    }
    return queue;
  }

  /** Waiting machines of the pool that will find a place. */
  waitingOf(pool: string): ReadonlySet<string> {
    return this.#waiting.get(pool) ?? new Set();
  }

  /** VM ids that no waiting machine will use. */
  freeIds(region: string): number {
    return (this.#ids.get(region) ?? 0) - (this.#held.get(region)?.reservations.length ?? 0);
  }

  addresses(region: string): readonly HeldAddresses[] {
    return this.#held.get(region)?.addresses ?? [];
  }

  /** The region after all waiting machines have been placed. */
  facts(view: RegionView): RegionFacts {
    const facts = placementFacts(this.#context, { view, busyHosts: [] });
    const held = this.#held.get(view.region);
    return held === undefined ? facts : together(facts, held);
  }

  async #hold(machine: Machine): Promise<void> {
    const pool = settingsOf(this.#context.settings, machine);
    const only = machine.requiredHost?.region;
    for (const name of pool?.regions ?? []) {
      const view = this.#context.views.get(name);
      if (pool === undefined || view === undefined || this.freeIds(name) <= 0) continue;
      if (only !== undefined && only !== name) continue;
      const refusal = this.#holdIn(machine, { region: this.#context.region(name), view, pool });
      if (refusal === undefined) {
        this.unplaced.delete(machine.id);
        return;
      }
      this.unplaced.set(machine.id, refusal);
    }
  }

  /** Undefined when it is held there. */
  #holdIn(machine: Machine, where: PlacementScope): PlacementRefusal | undefined {
    const name = where.view.region;
    const source = sourceOf(this.#context, where);
    const wanted = placementRequest({ ...where, source }, machine.size);
    const request = onRequiredHost(wanted, machine);
    const decision = chooseHost(request, this.facts(where.view));
    if (!decision.placed) return decision;
    const held = this.addresses(name);
    const own = addressesBeside(this.#context, where, { machine: machine.id, held });
    if (!own.chosen) return own;
    this.#reserve(machine, name, { decision, memoryBytes: request.size.memoryBytes });
    this.#held.get(name)?.addresses.push({ machine: machine.id, addresses: own.addresses });
    return undefined;
  }

  #reserve(
    { id, pool, size }: Machine,
    region: string,
    { decision, memoryBytes }: { readonly decision: Placed; readonly memoryBytes: number },
  ): void {
    const held = this.#held.get(region) ?? {
      allocations: new HostAllocations(),
      reservations: [],
      addresses: [],
    };
    this.#held.set(region, held);
    const reservation = {
      // A placeholder: the VM id is chosen when the machine is placed.
      vmId: -1 - held.reservations.length,
      pool,
      host: decision.host,
      cpus: size.cpu,
      memoryBytes,
      storage: decision.storage,
      pendingDiskBytes: size.diskBytes,
    };
    held.allocations.setReservation(id, reservation);
    held.reservations.push(reservation);
    this.#waiting.set(pool, new Set(this.waitingOf(pool)).add(id));
  }
}

/** The region after what is held has been placed. */
export function together(
  facts: RegionFacts,
  { allocations, reservations }: Pick<Held, 'allocations' | 'reservations'>,
): RegionFacts {
  return {
    ...facts,
    reservations: [...facts.reservations, ...reservations],
    allocations: {
      allocationOf: (host) =>
        sum(facts.allocations?.allocationOf(host), allocations.allocationOf(host)),
    },
  };
}

type Tally = ReturnType<HostAllocations['allocationOf']>;

function sum(left: Tally, right: Tally): Tally {
  if (left === undefined || right === undefined) return left ?? right;
  const pools = new Map(left.pools);
  for (const [pool, count] of right.pools) pools.set(pool, (pools.get(pool) ?? 0) + count);
  return {
    cpus: left.cpus + right.cpus,
    memoryBytes: left.memoryBytes + right.memoryBytes,
    stoppedCpus: left.stoppedCpus + right.stoppedCpus,
    stoppedMemoryBytes: left.stoppedMemoryBytes + right.stoppedMemoryBytes,
    vms: left.vms + right.vms,
    pools,
  };
}
