// SPDX-License-Identifier: Apache-2.0

import { backoffOf } from './capacity/backoff.ts';
import { machineIdFrom } from './new-id.ts';
import type { PoolSettings } from './settings.ts';
import type { Turn } from './turn.ts';

/**
 * Keeps `min`. Only where everything of the pool is in sight: a machine that cannot be seen now, or that is being
 * made by a call nobody remembers, would be ordered twice.
 */
export async function keepMinimum(turn: Turn, undecided: ReadonlySet<string>): Promise<void> {
  for (const pool of Object.values(turn.settings.pools)) {
    const isInSight = pool.regions.every((name) => turn.views.has(name) && !undecided.has(name));
    if (!isInSight || backoffOf(turn, pool.name) !== undefined) continue;
    const lacking = pool.limits.min - turn.books.membersOf(pool.name).length;
    if (lacking > 0) await ask(turn, pool, lacking);
  }
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
