// SPDX-License-Identifier: Apache-2.0
import type { VirtualClock } from './virtual-clock.ts';

/** Far beyond what any single piece of work sleeps; reached only by one that waits for nothing that comes. */
const MOST_TURNS = 100_000;

/** Lets virtual time pass until the work is settled. */
export async function untilSettled<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  const state = { isSettled: false };
  const settle = () => {
    state.isSettled = true;
  };
  work.then(settle, settle);
  for (let turn = 0; !state.isSettled && turn < MOST_TURNS; turn += 1) {
    if (!(await clock.advanceToNext())) await clock.advance(1);
  }
  return work;
}
