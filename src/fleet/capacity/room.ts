// SPDX-License-Identifier: Apache-2.0
// For how many more machines of each pool there are hosts, VM ids and addresses, counted at the end of a round for those
// who ask in between.
import { freeSlots, idHoldOf } from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { cannotJoin } from '../nodes/can-join.ts';
import { knownNodes } from '../nodes/sight.ts';
import { roomFor } from '../pool-limits.ts';
import type { PoolSettings } from '../settings.ts';
import type { Turn } from '../turn.ts';
import { freeAddresses } from './addresses.ts';
import { backoffOf } from './backoff.ts';
import type { Outlook, Room } from './outlook.ts';
import { placementRequest, sourceOf } from './place.ts';
import { Queue } from './queue.ts';
import { takenInView, vmIdsOfNodes } from './taken.ts';

const COUNT_EVERY_MS = 5_000;
/** A region that was seen a moment ago has the room it had. */
const UNSEEN_FOR_MS = 60_000;

export async function countRooms(turn: Turn, outlook: Outlook): Promise<void> {
  const ageMs = turn.now - outlook.roomsAt;
  // Less than none: the clock was set back.
  if (ageMs >= 0 && ageMs < COUNT_EVERY_MS) return;
  outlook.roomsAt = turn.now;
  const ids = new Map<string, number>();
  for (const view of turn.views.values()) ids.set(view.region, countFreeIds(turn, view));
  await turn.breathe();
  const queue = await Queue.of(turn, ids);
  for (const pool of Object.values(turn.settings.pools)) {
    if (isUnseenForAMoment(turn, pool, outlook)) continue;
    outlook.setRoom(pool.name, await roomOf(turn, pool, queue));
    await turn.breathe();
  }
  outlook.counted();
}

function isUnseenForAMoment(turn: Turn, pool: PoolSettings, outlook: Outlook): boolean {
  if (outlook.room(pool.name) === undefined) return false;
  return pool.regions.some((region) => {
    const takenAt = outlook.takenAt(region);
    return !turn.views.has(region) && takenAt !== undefined && turn.now - takenAt <= UNSEEN_FOR_MS;
  });
}

async function roomOf(turn: Turn, pool: PoolSettings, queue: Queue): Promise<Room> {
  const backoff = backoffOf(turn, pool.name);
  if (backoff !== undefined) return noRoom(turn, backoff.message);
  const refused = cannotJoin(turn, pool);
  // What is only not seen just now passes; what was never there does not.
  if (refused !== undefined && turn.sight.kind !== 'stale') return noRoom(turn, refused.sentence);
  const members = turn.books.membersOf(pool.name);
  const { size, limits } = pool;
  const allowed = roomFor(pool, { members, count: limits.max, size });
  const waiting = queue.waitingOf(pool.name);
  if (allowed === 0) return { ...noRoom(turn, 'it has what its limits allow'), waiting };
  let machines = 0;
  let reason = 'its hosts cannot be read';
  for (const name of pool.regions) {
    const view = turn.views.get(name);
    if (view === undefined) continue;
    const atMost = allowed - machines;
    const room = await roomIn(turn, { view, pool, queue, atMost });
    machines += room.machines;
    reason = room.reason ?? 'no host has room for another';
  }
  const countedAt = turn.now;
  return { machines, countedAt, waiting, reason: machines === 0 ? reason : undefined };
}

function noRoom({ now: countedAt }: Turn, reason: string): Room {
  return { machines: 0, countedAt, waiting: new Set(), reason };
}

interface Counting {
  readonly view: RegionView;
  readonly pool: PoolSettings;
  readonly queue: Queue;
  readonly atMost: number;
}

async function roomIn(
  turn: Turn,
  { view, pool, queue, atMost }: Counting,
): Promise<Pick<Room, 'machines' | 'reason'>> {
  const name = view.region;
  const where = { region: turn.region(name), view, pool };
  const ids = Math.min(atMost, queue.freeIds(name));
  if (ids <= 0) return { machines: 0, reason: undefined };
  const held = queue.addresses(name);
  const addresses = await freeAddresses(turn, where, { held, atMost: ids });
  if (addresses.count === 0) return { machines: 0, reason: addresses.reason };
  const source = await sourceOf(turn, where);
  const request = placementRequest({ ...where, source }, pool.size);
  const { total } = freeSlots(request, queue.facts(view), addresses.count);
  return { machines: total, reason: undefined };
}

/** Neither seen, nor held by a machine that is there or whose id rests, nor named by a Node. */
function countFreeIds(turn: Turn, view: RegionView): number {
  const { from, to } = turn.region(view.region).vmIds;
  const taken = new Set<number>();
  const take = (id: number) => {
    if (id >= from && id <= to) taken.add(id);
  };
  for (const id of takenInView(view).vmIds) take(id);
  for (const id of vmIdsOfNodes(knownNodes(turn.sight), view.region)) take(id);
  for (const machine of turn.books.machines) {
    const { placement } = machine;
    if (placement?.region !== view.region || taken.has(placement.vmId)) continue;
    if (idHoldOf(machine, turn.now) !== undefined) take(placement.vmId);
  }
  return to - from + 1 - taken.size;
}
