// SPDX-License-Identifier: Apache-2.0
// For how many more machines of each pool the hosts have room, counted at the end of a round for those who ask in
// between.
import { freeSlots } from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { cannotJoin } from '../nodes/can-join.ts';
import { roomFor } from '../pool-limits.ts';
import type { PoolSettings } from '../settings.ts';
import type { Turn } from '../turn.ts';
import { backoffOf } from './backoff.ts';
import type { Outlook, Room } from './outlook.ts';
import { placementRequest, sourceOf } from './place.ts';
import { Queue } from './queue.ts';
import { takenInView } from './taken.ts';

const COUNT_EVERY_MS = 5_000;
/** A region that was seen a moment ago has the room it had. */
const UNSEEN_FOR_MS = 60_000;

export async function countRooms(turn: Turn, outlook: Outlook): Promise<void> {
  if (turn.now - outlook.roomsAt < COUNT_EVERY_MS) return;
  outlook.roomsAt = turn.now;
  const ids = new Map<string, number>();
  for (const view of turn.views.values()) ids.set(view.region, countFreeIds(turn, view));
  await turn.breathe();
  const queue = await Queue.of(turn);
  for (const pool of Object.values(turn.settings.pools)) {
    if (isUnseenForAMoment(turn, pool, outlook)) continue;
    outlook.setRoom(pool.name, await roomOf(turn, pool, { ids, queue }));
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

interface Counted {
  /** Free VM ids by region. */
  readonly ids: ReadonlyMap<string, number>;
  readonly queue: Queue;
}

async function roomOf(turn: Turn, pool: PoolSettings, { ids, queue }: Counted): Promise<Room> {
  const backoff = backoffOf(turn, pool.name);
  if (backoff !== undefined) return noRoom(turn, backoff.message);
  const refused = cannotJoin(turn, pool);
  // What is only not seen just now passes; what was never there does not.
  if (refused !== undefined && turn.sight.kind !== 'stale') return noRoom(turn, refused.sentence);
  const members = turn.books.membersOf(pool.name);
  const { size, limits } = pool;
  const allowed = roomFor(pool, { members, count: limits.max, size });
  if (allowed === 0) return noRoom(turn, 'it has what its limits allow');
  let machines = 0;
  for (const name of pool.regions) {
    const view = turn.views.get(name);
    if (view === undefined) continue;
    const where = { region: turn.region(name), view, pool };
    const source = await sourceOf(turn, where);
    const freeIds = (ids.get(name) ?? 0) - queue.heldIn(name);
    const atMost = Math.min(allowed - machines, freeIds);
    if (atMost <= 0) continue;
    const request = placementRequest({ ...where, source }, size);
    machines += freeSlots(request, queue.facts(view), atMost).total;
  }
  const reason = pool.regions.some((region) => turn.views.has(region))
    ? 'no host has room for another'
    : 'its hosts cannot be read';
  const waiting = queue.waitingOf(pool.name);
  const countedAt = turn.now;
  return { machines, countedAt, waiting, reason: machines === 0 ? reason : undefined };
}

function noRoom({ now: countedAt }: Turn, reason: string): Room {
  return { machines: 0, countedAt, waiting: new Set(), reason };
}

/** Ids that rest after their last owner are not free either: his record is still there. */
function countFreeIds(turn: Turn, view: RegionView): number {
  const { from, to } = turn.region(view.region).vmIds;
  const isInRange = (id: number) => id >= from && id <= to;
  const seen = takenInView(view).vmIds;
  const unseen = new Set<number>();
  for (const { placement } of turn.books.machines) {
    if (placement?.region !== view.region || seen.has(placement.vmId)) continue;
    if (isInRange(placement.vmId)) unseen.add(placement.vmId);
  }
  let taken = unseen.size;
  for (const id of seen) if (isInRange(id)) taken += 1;
  return to - from + 1 - taken;
}
