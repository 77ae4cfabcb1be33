// SPDX-License-Identifier: Apache-2.0
import type { ResourceDemand } from '../state/resource-names.ts';

/** The used amounts of a node by resource id. Absent amounts are 0. */
export type Load = readonly number[];

export const NO_LOAD: Load = [];

/** The load of a node after adding a pod. */
export function loadWith({ ids, amounts }: ResourceDemand, held: Load): Load {
  const load: number[] = [];
  for (let id = 0; id < held.length; id += 1) load.push(held[id] ?? 0);
  for (let i = 0; i < ids.length; i += 1) {
    const id = ids[i] ?? 0;
    while (load.length <= id) load.push(0);
    load[id] = (load[id] ?? 0) + (amounts[i] ?? 0);
  }
  return load;
}

export function addLoads(left: Load, right: Load): Load {
  if (right.length === 0) return left;
  const length = Math.max(left.length, right.length);
  return Array.from({ length }, (_, id) => (left[id] ?? 0) + (right[id] ?? 0));
}
