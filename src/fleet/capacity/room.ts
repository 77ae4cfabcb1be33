// SPDX-License-Identifier: Apache-2.0
// For how many more machines of each pool the hosts have room, counted at the end of a round for those who ask in
// between. What is taken is added up once per region and host: at thousands of machines, once per pool is too slow.
import {
  freeSlots,
  type RegionFacts,
  type Reservation,
  reservationsOf,
} from '../../placement/index.ts';
import type { RegionView, VmSummary } from '../../ports/hypervisor.ts';
import type { PoolSettings } from '../settings.ts';
import type { Turn } from '../turn.ts';
import { backoffOf } from './backoff.ts';
import type { Outlook, Room } from './outlook.ts';
import { placementRequest, sourceOf } from './place.ts';

const COUNT_EVERY_MS = 5_000;
/** A region that was seen a moment ago has the room it had. */
const UNSEEN_FOR_MS = 60_000;

export async function countRooms(turn: Turn, outlook: Outlook): Promise<void> {
  if (turn.now - outlook.roomsAt < COUNT_EVERY_MS) return;
  outlook.roomsAt = turn.now;
  const regions = new Map<string, Summed>();
  for (const view of turn.views.values()) regions.set(view.region, summedUp(turn, view));
  for (const pool of Object.values(turn.settings.pools)) {
    if (isUnseenForAMoment(turn, pool, outlook)) continue;
    outlook.setRoom(pool.name, await roomOf(turn, pool, regions));
    await turn.breathe();
  }
}

function isUnseenForAMoment(turn: Turn, pool: PoolSettings, outlook: Outlook): boolean {
  if (outlook.room(pool.name) === undefined) return false;
  return pool.regions.some((region) => {
    const takenAt = outlook.takenAt(region);
    return !turn.views.has(region) && takenAt !== undefined && turn.now - takenAt <= UNSEEN_FOR_MS;
  });
}

async function roomOf(
  turn: Turn,
  pool: PoolSettings,
  regions: ReadonlyMap<string, Summed>,
): Promise<Room> {
  const backoff = backoffOf(turn, pool.name);
  if (backoff !== undefined) return { machines: 0, reason: backoff.message };
  let machines = 0;
  for (const name of pool.regions) {
    const view = turn.views.get(name);
    const summed = regions.get(name);
    if (view === undefined || summed === undefined) continue;
    const where = { region: turn.region(name), view, pool };
    const source = await sourceOf(turn, where);
    const atMost = Math.min(pool.limits.max - machines, summed.freeIds);
    if (atMost <= 0) continue;
    const request = placementRequest({ ...where, source }, pool.size);
    machines += freeSlots(request, summed.facts, atMost).total;
  }
  const reason = pool.regions.some((region) => turn.views.has(region))
    ? 'no host has room for another'
    : 'its hosts cannot be read';
  return { machines, reason: machines === 0 ? reason : undefined };
}

interface Summed {
  readonly facts: RegionFacts;
  readonly freeIds: number;
}

function summedUp(turn: Turn, view: RegionView): Summed {
  const reservations = reservationsOf(turn.books.machines, view.region);
  const vms = [...sums(view, reservations)].map(([host, sum], index) => ({
    vmId: -1 - index,
    host,
    power: 'running' as const,
    isTemplate: false,
    ...sum,
  }));
  // Only for the disks that are not there yet; what they take of the host is in the sums.
  const disks = reservations
    .filter(({ pendingDiskBytes }) => pendingDiskBytes > 0)
    .map((one, index) => ({ ...one, vmId: -100_000 - index, cpus: 0, memoryBytes: 0 }));
  return {
    facts: { hosts: view.hosts, vms, reservations: disks },
    freeIds: freeIds(turn, view),
  };
}

interface Sum {
  readonly cpus: number;
  readonly memoryBytes: number;
}

const NOTHING: Sum = { cpus: 0, memoryBytes: 0 };

/** By host. A machine that is seen counts once, where it is, with the larger of what is shown and promised. */
function sums({ vms }: RegionView, reservations: readonly Reservation[]): ReadonlyMap<string, Sum> {
  const hosts = new Map<string, Sum>();
  const add = (host: string, more: Sum) => {
    const { cpus, memoryBytes } = hosts.get(host) ?? NOTHING;
    hosts.set(host, { cpus: cpus + more.cpus, memoryBytes: memoryBytes + more.memoryBytes });
  };
  const unseen = new Map(reservations.map((one) => [one.vmId, one]));
  for (const vm of vms) {
    const promised = unseen.get(vm.vmId) ?? NOTHING;
    unseen.delete(vm.vmId);
    add(vm.host, larger(vm.isTemplate ? NOTHING : shownOf(vm), promised));
  }
  for (const one of unseen.values()) add(one.host, one);
  return hosts;
}

function shownOf({ cpus, memoryBytes }: VmSummary): Sum {
  return { cpus: cpus ?? 0, memoryBytes: memoryBytes ?? 0 };
}

function larger(left: Sum, right: Sum): Sum {
  return {
    cpus: Math.max(left.cpus, right.cpus),
    memoryBytes: Math.max(left.memoryBytes, right.memoryBytes),
  };
}

/** Ids that rest after their last owner are not free either: his record is still there. */
function freeIds(turn: Turn, { region, takenVmIds }: RegionView): number {
  const { from, to } = turn.region(region).vmIds;
  const held = new Set(takenVmIds);
  for (const { placement } of turn.books.machines) {
    if (placement?.region === region) held.add(placement.vmId);
  }
  let taken = 0;
  for (const id of held) if (id >= from && id <= to) taken += 1;
  return to - from + 1 - taken;
}
