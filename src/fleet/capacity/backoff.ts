// SPDX-License-Identifier: Apache-2.0
// A pool whose new machines keep failing creates none for a while, longer after each failure.
import { formatCount } from '../../model/format-text.ts';
import type { PoolBackoff } from '../../model/pool.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { FleetSettings } from '../context/settings.ts';

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
    message: `pool ${pool} creates no machine for ${seconds} s after ${formatCount(failures, 'failure')} in a row: ${error.message}`,
    numbers: { failures, seconds },
  });
}

function nextBackoff(
  { now, settings }: ReconcileContext,
  last: PoolBackoff | undefined,
  { isNew, code, message }: CreationError & { readonly isNew: boolean },
): PoolBackoff {
  const failures = (last?.failures ?? 0) + (isNew ? 1 : 0);
  const until = Math.max(last?.until ?? 0, now + pauseMs(settings, failures));
  return { failures, since: last?.since ?? now, until, code, message };
}

function pauseMs({ backoff }: FleetSettings, failures: number): number {
  return Math.min(backoff.initialMs * 2 ** (failures - 1), backoff.maxMs);
}

/** Shortens a back-off that ends later than its pause from now: the clock was ahead when it began. */
export async function limitBackoff(context: ReconcileContext, pool: string): Promise<void> {
  if (context.records.pool(pool).backoff === undefined) return;
  await context.records.changePool(pool, (state) => {
    const { backoff } = state;
    if (backoff === undefined) return undefined;
    const until = context.now + pauseMs(context.settings, backoff.failures);
    if (backoff.until <= until) return undefined;
    return {
      ...state,
      backoff: { ...backoff, since: Math.min(backoff.since, context.now), until },
    };
  });
}

export function backoffOf(context: ReconcileContext, pool: string): PoolBackoff | undefined {
  const { backoff } = context.records.pool(pool);
  return backoff !== undefined && backoff.until > context.now ? backoff : undefined;
}
