// SPDX-License-Identifier: Apache-2.0
// A pool whose new machines keep failing creates none for a while, longer after each failure.
import type { PoolBackoff } from '../../model/pool.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

interface CreationError {
  readonly code: string;
  readonly message: string;
}

export async function backOff(
  context: ReconcileContext,
  pool: string,
  error: CreationError,
): Promise<void> {
  let isNew = false;
  await context.records.changePool(pool, (state) => {
    // Machines that fail together are one failure.
    isNew = (state.backoff?.until ?? 0) <= context.now;
    return { ...state, backoff: nextBackoff(context, state.backoff, { ...error, isNew }) };
  });
  const { backoff } = context.records.pool(pool);
  if (!isNew || backoff === undefined) return;
  const { failures, until } = backoff;
  const seconds = Math.round((until - context.now) / 1_000);
  await context.record({
    kind: 'refused',
    subject: { pool },
    reason: 'PoolBackedOff',
    message: `pool ${pool} creates no machine for ${seconds} s after ${failures} failures in a row: ${error.message}`,
    numbers: { failures, seconds },
  });
}

function nextBackoff(
  { now, settings }: ReconcileContext,
  last: PoolBackoff | undefined,
  { isNew, code, message }: CreationError & { readonly isNew: boolean },
): PoolBackoff {
  const { initialMs, maxMs } = settings.backoff;
  const failures = (last?.failures ?? 0) + (isNew ? 1 : 0);
  const pauseMs = Math.min(initialMs * 2 ** (failures - 1), maxMs);
  const until = Math.max(last?.until ?? 0, now + pauseMs);
  return { failures, since: last?.since ?? now, until, code, message };
}

export function backoffOf(context: ReconcileContext, pool: string): PoolBackoff | undefined {
  const { backoff } = context.records.pool(pool);
  return backoff !== undefined && backoff.until > context.now ? backoff : undefined;
}
