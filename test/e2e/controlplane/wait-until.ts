// SPDX-License-Identifier: Apache-2.0
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_INTERVAL_MS = 50;

/** Thrown by a check whose condition can no longer become true. */
export class PermanentFailure extends Error {}

/**
 * Polls until `check` returns something other than undefined or false. A check that throws counts as not yet true. For
 * programs in real time without a completion signal; the limit only ends a failed test.
 */
export async function waitUntil<T>(
  condition: string,
  check: () => T | Promise<T>,
  limitMs = 240_000,
): Promise<Exclude<T, undefined | false>> {
  const deadline = performance.now() + limitMs;
  let last: unknown;
  while (performance.now() < deadline) {
    try {
      const result = await check();
      if (result !== undefined && result !== false) return result as Exclude<T, undefined | false>;
      last = result;
    } catch (error) {
      if (error instanceof PermanentFailure) throw error;
      last = error;
    }
    await sleep(POLL_INTERVAL_MS);
  }
  throw new Error(
    `timed out after ${limitMs} ms waiting for: ${condition} (last result: ${String(last)})`,
    {
      cause: last,
    },
  );
}
