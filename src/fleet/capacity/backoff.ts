// SPDX-License-Identifier: Apache-2.0
// A pool whose new machines keep failing waits, longer each time, and says so.
import type { PoolBackoff } from '../../model/pool.ts';
import type { Turn } from '../turn.ts';

interface Trouble {
  readonly code: string;
  readonly message: string;
}

export async function backOff(turn: Turn, pool: string, trouble: Trouble): Promise<void> {
  let isNew = false;
  await turn.books.changePool(pool, (state) => {
    // Machines that fail together are one failure.
    isNew = (state.backoff?.until ?? 0) <= turn.now;
    return { ...state, backoff: nextBackoff(turn, state.backoff, { ...trouble, isNew }) };
  });
  const { backoff } = turn.books.pool(pool);
  if (!isNew || backoff === undefined) return;
  const { failures, until } = backoff;
  const seconds = Math.round((until - turn.now) / 1_000);
  await turn.tell({
    kind: 'refused',
    subject: { pool },
    reason: 'PoolBackedOff',
    message: `pool ${pool} makes no new machine for ${seconds} s after ${failures} failures in a row: ${trouble.message}`,
    numbers: { failures, seconds },
  });
}

function nextBackoff(
  { now, settings }: Turn,
  last: PoolBackoff | undefined,
  { isNew, code, message }: Trouble & { readonly isNew: boolean },
): PoolBackoff {
  const { initialMs, maxMs } = settings.backoff;
  const failures = (last?.failures ?? 0) + (isNew ? 1 : 0);
  const pauseMs = Math.min(initialMs * 2 ** (failures - 1), maxMs);
  const until = Math.max(last?.until ?? 0, now + pauseMs);
  return { failures, since: last?.since ?? now, until, code, message };
}

export function backoffOf(turn: Turn, pool: string): PoolBackoff | undefined {
  const { backoff } = turn.books.pool(pool);
  return backoff !== undefined && backoff.until > turn.now ? backoff : undefined;
}
