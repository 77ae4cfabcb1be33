// SPDX-License-Identifier: Apache-2.0

import { countAllowed } from '../../pools/index.ts';
import { backoffOf } from '../capacity/backoff.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { joinRefusal } from '../nodes/can-join.ts';
import { newMachineId } from '../records/new-machine-id.ts';

/**
 * Requests machines up to the pool's `min`. Only while all regions of the pool can be read and no VM there is
 * undecided: otherwise a machine that exists but is not known yet would be created twice.
 */
export async function maintainMinimum(
  context: ReconcileContext,
  undecided: ReadonlySet<string>,
): Promise<void> {
  for (const pool of Object.values(context.settings.pools)) {
    const isReadable = pool.regions.every(
      (name) => context.views.has(name) && !undecided.has(name),
    );
    if (!isReadable || joinRefusal(context, pool) !== undefined) continue;
    if (backoffOf(context, pool.name) !== undefined) continue;
    const members = context.records.membersOf(pool.name);
    const lacking = pool.limits.min - members.length;
    const count = countAllowed(pool, { members, count: lacking, size: pool.size });
    if (count < lacking) await recordLimit(context, pool, members.length + count);
    if (count > 0) await requestMachines(context, pool, count);
  }
}

function recordLimit(
  context: ReconcileContext,
  { name, limits }: PoolSettings,
  allowed: number,
): Promise<void> {
  return context.recordOnce(`minimum of ${name}`, {
    kind: 'refused',
    subject: { pool: name },
    reason: 'POOL_AT_MAXIMUM',
    message: `pool ${name} has a minimum of ${limits.min} machines; its limits of cpu and memory allow ${allowed}`,
    numbers: { min: limits.min, allowed },
  });
}

async function requestMachines(
  context: ReconcileContext,
  pool: PoolSettings,
  count: number,
): Promise<void> {
  await context.records.putIntent({
    id: context.random.uuid(),
    kind: 'create',
    pool: pool.name,
    requestedAt: context.now,
    requestedBy: 'minimum',
    reason: `the pool's minimum is ${pool.limits.min}`,
    state: 'open',
    machines: Array.from({ length: count }, () => newMachineId(context.random)),
    size: pool.size,
  });
}
