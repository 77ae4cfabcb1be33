// SPDX-License-Identifier: Apache-2.0

import type { NodeInfo } from '../state/node-info.ts';
import type { PendingPod } from '../state/pending-pod.ts';
import type { Filter } from './filter.ts';

/** Checks only requested resources: the node may be overcommitted in others. */
export function hasCapacity({ demand }: PendingPod, nodeInfo: NodeInfo): boolean {
  for (let i = 0; i < demand.ids.length; i += 1) {
    if ((demand.amounts[i] ?? 0) > nodeInfo.free(demand.ids[i] ?? 0)) return false;
  }
  return true;
}

export const nodeResourcesFit: Filter = (pendingPod, nodeInfo, cluster) => {
  if (hasCapacity(pendingPod, nodeInfo)) return undefined;
  const { ids, amounts } = pendingPod.demand;
  const shortfalls = ids
    .map((id, i) => ({
      resource: cluster.resources.name(id),
      requested: amounts[i] ?? 0,
      used: nodeInfo.used[id] ?? 0,
      allocatable: nodeInfo.allocatable[id] ?? 0,
    }))
    .filter(({ requested, used, allocatable }) => requested > allocatable - used);
  return { filter: 'NodeResourcesFit', shortfalls };
};
