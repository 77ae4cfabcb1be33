// SPDX-License-Identifier: Apache-2.0
import type { Candidate } from '../state/candidate.ts';
import type { Slot } from '../state/slot.ts';
import type { Filter } from './filter.ts';

/** Only what the pod asks for is checked: a node may be overcommitted in everything else. */
export function hasRoom({ demand }: Candidate, slot: Slot): boolean {
  for (let i = 0; i < demand.ids.length; i += 1) {
    if ((demand.amounts[i] ?? 0) > slot.free(demand.ids[i] ?? 0)) return false;
  }
  return true;
}

export const nodeResourcesFit: Filter = (candidate, slot, world) => {
  if (hasRoom(candidate, slot)) return undefined;
  const { ids, amounts } = candidate.demand;
  const shortfalls = ids
    .map((id, i) => ({
      resource: world.resources.name(id),
      requested: amounts[i] ?? 0,
      used: slot.used[id] ?? 0,
      allocatable: slot.allocatable[id] ?? 0,
    }))
    .filter(({ requested, used, allocatable }) => requested > allocatable - used);
  return { filter: 'NodeResourcesFit', shortfalls };
};
