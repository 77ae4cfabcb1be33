// SPDX-License-Identifier: Apache-2.0
// A pool whose new machines keep failing waits, longer each time, and says so.
import type { PoolBackoff } from '../../model/pool.ts';
import type { Turn } from '../turn.ts';

interface Trouble {
  readonly code: string;
  readonly message: string;
}

export async function backOff(turn: Turn, pool: string, trouble: Trouble): Promise<void> {
  const state = turn.books.pool(pool);
  const { initialMs, maxMs } = turn.settings.backoff;
  const { failures: before = 0, since = turn.now, until: last = 0 } = state.backoff ?? {};
  // Machines that fail together are one failure.
  const failures = last > turn.now ? before : before + 1;
  const pauseMs = Math.min(initialMs * 2 ** (failures - 1), maxMs);
  const until = Math.max(last, turn.now + pauseMs);
  const backoff: PoolBackoff = { failures, since, until, ...trouble };
  await turn.books.putPool({ ...state, backoff });
  if (failures === before) return;
  const seconds = Math.round(pauseMs / 1_000);
  await turn.tell({
    kind: 'refused',
    subject: { pool },
    reason: 'PoolBackedOff',
    message: `pool ${pool} makes no new machine for ${seconds} s after ${failures} failures in a row: ${trouble.message}`,
    numbers: { failures, seconds },
  });
}

export function backoffOf(turn: Turn, pool: string): PoolBackoff | undefined {
  const { backoff } = turn.books.pool(pool);
  return backoff !== undefined && backoff.until > turn.now ? backoff : undefined;
}
