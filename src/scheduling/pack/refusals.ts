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
import { loadWith, NO_LOAD } from './load.ts';
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
  // The trial machine is added once for all groups, because adding it is expensive.
  for (const template of templates) {
    tryMachines([template], cluster, ([nodeInfo]) => {
      for (const [group, all] of found)
        all.push(refusalFor(group, template, { nodeInfo, cluster }));
    });
  }
  explainByOthers(found, templates, cluster);
  return found;
}

// Alone, a machine would accept the pod. Beside an empty machine in each of the other domains, which could be
// opened too, it would not: the pods would be spread unevenly.
function explainByOthers(
  found: ReadonlyMap<PodGroup, PoolRefusal[]>,
  templates: readonly MachineTemplate[],
  cluster: ClusterState,
): void {
  const unexplained = [...found].filter(([, all]) => all.some(isUnexplained));
  if (unexplained.length === 0) return;
  const useful = templates.filter((template) => template.cheapestToOpen(NO_LOAD) !== undefined);
  tryMachines(useful, cluster, (nodeInfos) => {
    for (const [group, all] of unexplained) {
      for (const [i, template] of templates.entries()) {
        const refusal = all[i];
        if (refusal === undefined || !isUnexplained(refusal)) continue;
        const nodeInfo = nodeInfos[useful.indexOf(template)];
        all[i] = refusalFor(group, template, { nodeInfo, cluster });
      }
    }
  });
}

function isUnexplained({ reasons, limit }: PoolRefusal): boolean {
  return reasons.length === 0 && limit === undefined;
}

/** Runs `work` while one trial machine of each template is in the cluster, with its daemon pods. */
function tryMachines(
  templates: readonly MachineTemplate[],
  cluster: ClusterState,
  work: (nodeInfos: readonly NodeInfo[]) => void,
): void {
  const nodeCount = cluster.nodeInfos.length;
  const draft = new Draft(cluster);
  work(templates.map((template, i) => addTrialNode(template, `${ANY_MACHINE}-${i}`, draft)));
  draft.undo();
  cluster.dropNodeInfos(nodeCount);
}

function addTrialNode(template: MachineTemplate, name: string, draft: Draft): NodeInfo {
  const nodeInfo = draft.addNode(template.node(name));
  new DaemonPods(template.daemons(name), nodeInfo, draft.cluster).admit(draft);
  return nodeInfo;
}

function refusalFor(
  group: PodGroup,
  template: MachineTemplate,
  {
    nodeInfo,
    cluster,
  }: { readonly nodeInfo: NodeInfo | undefined; readonly cluster: ClusterState },
): PoolRefusal {
  const { pool, domain, sizeOptions } = template;
  if (nodeInfo === undefined) throw new RangeError('the template has no trial machine');
  const load = loadWith(group.pendingPod.demand, nodeInfo.used);
  const option = sizeOptions.cheapestFor(load, 0);
  // A template's node has no size yet: resources are checked against the available sizes.
  const others = runAllFilters(group.pendingPod, nodeInfo, cluster).filter(
    ({ filter }) => filter !== 'NodeResourcesFit',
  );
  const shortage =
    option === undefined
      ? [shortfallReason(group, nodeInfo, { option: sizeOptions.largest, cluster })]
      : [];
  const limit =
    template.cheapestToOpen(load) === undefined
      ? template.findExceededLimit(machineGrowth((option ?? sizeOptions.largest).size.capacity))
      : undefined;
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
