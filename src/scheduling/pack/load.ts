// SPDX-License-Identifier: Apache-2.0
import type { Slot } from '../state/slot.ts';
import type { PodGroup } from './groups.ts';

/** What a node would hold with one more pod of the group, by resource number. */
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
