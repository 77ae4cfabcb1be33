// SPDX-License-Identifier: Apache-2.0
// What a node holds, or would hold, by resource number.

import type { Slot } from '../state/slot.ts';
import type { PodGroup } from './groups.ts';

/** With one more pod of the group. */
export function loadWith({ candidate }: PodGroup, { used }: Slot): readonly number[] {
  const load: number[] = [];
  for (let id = 0; id < used.length; id += 1) load.push(used[id] ?? 0);
  const { ids, amounts } = candidate.demand;
  for (let i = 0; i < ids.length; i += 1) {
    const id = ids[i] ?? 0;
    while (load.length <= id) load.push(0);
    load[id] = (load[id] ?? 0) + (amounts[i] ?? 0);
  }
  return load;
}

/** Whether one more pod of the group stays within the most that any size has. */
export function canHold({ candidate }: PodGroup, slot: Slot, top: readonly number[]): boolean {
  const { ids, amounts } = candidate.demand;
  for (let i = 0; i < ids.length; i += 1) {
    const id = ids[i] ?? 0;
    if ((slot.used[id] ?? 0) + (amounts[i] ?? 0) > (top[id] ?? 0)) return false;
  }
  return true;
}
