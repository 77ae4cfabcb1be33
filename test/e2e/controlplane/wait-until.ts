// SPDX-License-Identifier: Apache-2.0
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 50;

/** Thrown by a look: what it waits for will not come any more. */
export class WaitingIsNoUse extends Error {}

/**
 * Looks until it sees what it waits for: anything but undefined or false. A look that throws has seen nothing yet. For
 * programs on real time, where nothing else says when they are done; the limit only ends a test that has failed.
 */
export async function waitUntil<T>(
  what: string,
  look: () => T | Promise<T>,
  limitMs = 60_000,
): Promise<Exclude<T, undefined | false>> {
  const giveUpAt = performance.now() + limitMs;
  let last: unknown;
  while (performance.now() < giveUpAt) {
    try {
      const seen = await look();
      if (seen !== undefined && seen !== false) return seen as Exclude<T, undefined | false>;
      last = seen;
    } catch (error) {
      if (error instanceof WaitingIsNoUse) throw error;
      last = error;
    }
    await sleep(LOOK_EVERY_MS);
  }
  throw new Error(`not within ${limitMs} ms: ${what} (last seen: ${String(last)})`, {
    cause: last,
  });
}
