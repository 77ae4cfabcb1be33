// SPDX-License-Identifier: Apache-2.0

import { backoffOf } from './capacity/backoff.ts';
import { machineIdFrom } from './new-id.ts';
import { cannotJoin } from './nodes/can-join.ts';
import { roomFor } from './pool-limits.ts';
import type { PoolSettings } from './settings.ts';
import type { Turn } from './turn.ts';

/**
 * Keeps `min`. Only where everything of the pool is in sight: a machine that cannot be seen now, or that is being
 * made by a call nobody remembers, would be ordered twice.
 */
export async function keepMinimum(turn: Turn, undecided: ReadonlySet<string>): Promise<void> {
  for (const pool of Object.values(turn.settings.pools)) {
    const isInSight = pool.regions.every((name) => turn.views.has(name) && !undecided.has(name));
    if (!isInSight || cannotJoin(turn, pool) !== undefined) continue;
    if (backoffOf(turn, pool.name) !== undefined) continue;
    const members = turn.books.membersOf(pool.name);
    const lacking = pool.limits.min - members.length;
    const count = roomFor(pool, { members, count: lacking, size: pool.size });
    if (count < lacking) await tellLimit(turn, pool, members.length + count);
    if (count > 0) await ask(turn, pool, count);
  }
}

function tellLimit(turn: Turn, { name, limits }: PoolSettings, most: number): Promise<void> {
  return turn.tellOnce(`minimum of ${name}`, {
    kind: 'refused',
    subject: { pool: name },
    reason: 'POOL_AT_MAXIMUM',
    message: `pool ${name} is to keep ${limits.min} machines; its limits of cpu and memory allow ${most}`,
    numbers: { min: limits.min, most },
  });
}

async function ask(turn: Turn, pool: PoolSettings, count: number): Promise<void> {
  await turn.books.putIntent({
    id: turn.random.uuid(),
    kind: 'create',
    pool: pool.name,
    requestedAt: turn.now,
    requestedBy: 'minimum',
    reason: `the pool keeps ${pool.limits.min}`,
    state: 'open',
    machines: Array.from({ length: count }, () => machineIdFrom(turn.random)),
    size: pool.size,
  });
}
