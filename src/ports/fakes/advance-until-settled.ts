// SPDX-License-Identifier: Apache-2.0
import type { VirtualClock } from './virtual-clock.ts';

/** Reached only by work that waits for something that never happens. */
const MAX_STEPS = 100_000;

/** Advances virtual time until the promise settles. */
export async function advanceUntilSettled<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  const state = { isSettled: false };
  const settle = () => {
    state.isSettled = true;
  };
  work.then(settle, settle);
  for (let step = 0; !state.isSettled && step < MAX_STEPS; step += 1) {
    if (!(await clock.advanceToNext())) await clock.advance(1);
  }
  return work;
}
