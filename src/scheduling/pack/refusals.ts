// SPDX-License-Identifier: Apache-2.0
// Explains why no new machine would run a pod, per pool and domain.

import { runAllFilters } from '../filters/all.ts';
import type { FilterReason } from '../reasons.ts';
import { Draft } from '../snapshot.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { NodeInfo } from '../state/node-info.ts';
import { machineGrowth } from './budget.ts';
import { DaemonPods } from './daemon-pods.ts';
import type { PodGroup } from './groups.ts';
import { loadWith } from './load.ts';
import { ANY_MACHINE, type MachineTemplate } from './machine-template.ts';
import type { PoolRefusal } from './result.ts';
import type { SizeOption } from './size-options.ts';

/** One refusal per template for each group. */
export function explainRefusals(
  groups: readonly PodGroup[],
  templates: readonly MachineTemplate[],
  cluster: ClusterState,
): ReadonlyMap<PodGroup, readonly PoolRefusal[]> {
  const found = new Map<PodGroup, PoolRefusal[]>(groups.map((group) => [group, []]));
  for (const template of templates) {
    // The trial machine is added once for all groups, because adding it is expensive.
    const nodeCount = cluster.nodeInfos.length;
    const draft = new Draft(cluster);
    const nodeInfo = addTrialNode(template, draft);
    for (const [group, all] of found) all.push(refusalFor(group, template, { nodeInfo, cluster }));
    draft.undo();
    cluster.dropNodeInfos(nodeCount);
  }
  return found;
}

function addTrialNode(template: MachineTemplate, draft: Draft): NodeInfo {
  const nodeInfo = draft.addNode(template.node(ANY_MACHINE));
  new DaemonPods(template.daemons(ANY_MACHINE), nodeInfo, draft.cluster).admit(draft);
  return nodeInfo;
}

function refusalFor(
  group: PodGroup,
  template: MachineTemplate,
  { nodeInfo, cluster }: { readonly nodeInfo: NodeInfo; readonly cluster: ClusterState },
): PoolRefusal {
  const { pool, domain, sizeOptions } = template;
  const option = sizeOptions.cheapestFor(loadWith(group.pendingPod.demand, nodeInfo.used), 0);
  // A template's node has no size yet: resources are checked against the available sizes.
  const others = runAllFilters(group.pendingPod, nodeInfo, cluster).filter(
    ({ filter }) => filter !== 'NodeResourcesFit',
  );
  const shortage =
    option === undefined
      ? [shortfallReason(group, nodeInfo, { option: sizeOptions.largest, cluster })]
      : [];
  const limit = template.findExceededLimit(
    machineGrowth((option ?? sizeOptions.largest).size.capacity),
  );
  return {
    pool: pool.name,
    domain: domain.name,
    reasons: [...shortage, ...others],
    ...(limit !== undefined && { limit }),
  };
}

function shortfallReason(
  group: PodGroup,
  nodeInfo: NodeInfo,
  { option, cluster }: { readonly option: SizeOption; readonly cluster: ClusterState },
): FilterReason {
  const { ids, amounts } = group.pendingPod.demand;
  const all = ids.map((id, i) => ({
    resource: cluster.resources.name(id),
    requested: amounts[i] ?? 0,
    used: nodeInfo.used[id] ?? 0,
    allocatable: option.allocatable[id] ?? 0,
  }));
  const short = all.filter(({ requested, used, allocatable }) => requested > allocatable - used);
  return { filter: 'NodeResourcesFit', shortfalls: short };
}
