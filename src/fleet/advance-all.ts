// SPDX-License-Identifier: Apache-2.0
import type { Machine } from '../model/machine.ts';
import { atOnce } from './at-once.ts';
import { advance } from './lifecycle/advance.ts';
import type { Turn } from './turn.ts';

const LEAST_AT_ONCE = 8;
const MOST_AT_ONCE = 32;
/** Of the few requests that a host answers at the same time, some are left to others. */
const PER_HOST = 2;

/** Takes all of them as far as they go now, several side by side: one whose host is slow holds up few others. */
export async function advanceAll(turn: Turn, machines: readonly Machine[]): Promise<void> {
  await atOnce(machines, limitOf(turn), async ({ id }) => {
    await advance(turn, id);
    await turn.breathe();
  });
}

function limitOf({ views }: Turn): number {
  const hosts = [...views.values()].reduce((sum, view) => sum + view.hosts.length, 0);
  return Math.min(Math.max(LEAST_AT_ONCE, PER_HOST * hosts), MOST_AT_ONCE);
}
