// SPDX-License-Identifier: Apache-2.0
// Simulates draining nodes: a new node for every pod, or the pods that fit nowhere else.

import { isDaemonSetPod, type Pod } from '../model/pod.ts';
import { runAllFilters } from './filters/all.ts';
import { groupPods, type PodGroup } from './pack/groups.ts';
import { fillNodes, startProgress, unfinished } from './pack/passes.ts';
import { Placer } from './pack/placer.ts';
import { resourceWeights } from './pack/weights.ts';
import type { FilterReason } from './reasons.ts';
import { Draft, type Snapshot } from './snapshot.ts';
import type { ClusterState } from './state/cluster-state.ts';

export interface DrainSimulationOptions {
  /** Pods of lower priority may be deleted without a replacement. */
  readonly expendableBelow?: number;
  /** Nodes that must not get pods, for example because they will be drained too. */
  readonly avoid?: ReadonlySet<string>;
}

export interface PodMove {
  readonly pod: Pod;
  readonly from: string;
  readonly to: string;
}

export interface UnmovablePod {
  readonly pod: Pod;
  readonly from: string;
  /** For every node that was checked, the reasons against it. */
  readonly nodes: readonly { readonly node: string; readonly reasons: readonly FilterReason[] }[];
}

export type DrainSimulation =
  | { readonly isPossible: true; readonly moves: readonly PodMove[] }
  | {
      readonly isPossible: false;
      readonly unmovable: readonly UnmovablePod[];
      /** Where the other pods would be placed. */
      readonly moves: readonly PodMove[];
    };

export function simulateDrain(
  snapshot: Snapshot,
  nodeNames: readonly string[],
  options: DrainSimulationOptions = {},
): DrainSimulation {
  const draft = new Draft(snapshot.activate());
  try {
    const originalNodes = removeNodes(draft, nodeNames, options);
    return placeElsewhere(draft, originalNodes, options.avoid ?? new Set());
  } finally {
    draft.undo();
  }
}

/** Removes the nodes and returns the pods that need a new node, with their original node. */
function removeNodes(
  draft: Draft,
  nodeNames: readonly string[],
  options: DrainSimulationOptions,
): ReadonlyMap<Pod, string> {
  const originalNodes = new Map<Pod, string>();
  for (const name of nodeNames) {
    const nodeInfo = draft.cluster.nodeInfo(name);
    if (nodeInfo === undefined) throw new RangeError(`node '${name}' is not in this snapshot`);
    for (const { pod } of nodeInfo.placedPods) {
      if (needsNewNode(pod, options)) originalNodes.set(asPending(pod), name);
    }
    draft.removeNode(nodeInfo);
  }
  return originalNodes;
}

// DaemonSet pods and static pods belong to the node; terminating pods need no new node.
function needsNewNode(pod: Pod, { expendableBelow }: DrainSimulationOptions): boolean {
  if (isDaemonSetPod(pod) || pod.isMirror || pod.isTerminating) return false;
  return expendableBelow === undefined || pod.priority >= expendableBelow;
}

function asPending(pod: Pod): Pod {
  return { ...pod, nodeName: '', nominatedNodeName: '' };
}

function placeElsewhere(
  draft: Draft,
  originalNodes: ReadonlyMap<Pod, string>,
  avoid: ReadonlySet<string>,
): DrainSimulation {
  const { cluster } = draft;
  const weights = resourceWeights([...originalNodes.keys()], []);
  const placer = new Placer(draft, weights);
  for (const nodeInfo of cluster.nodeInfos) {
    if (nodeInfo.isPresent && !avoid.has(nodeInfo.node.name)) placer.addNode(nodeInfo);
  }
  const work = startProgress(groupPods([...originalNodes.keys()], cluster, weights));
  fillNodes(work, placer);
  const unmovable = unfinished(work).flatMap(({ group, placed }) =>
    explainUnmovable(group, placed, { cluster, originalNodes, avoid }),
  );
  const moves = placer.placements.map(({ pod, bin }) => ({
    pod,
    from: originalNodes.get(pod) ?? '',
    to: bin.nodeInfo.node.name,
  }));
  return unmovable.length === 0
    ? { isPossible: true, moves }
    : { isPossible: false, unmovable, moves };
}

function explainUnmovable(
  group: PodGroup,
  placed: number,
  context: {
    readonly cluster: ClusterState;
    readonly originalNodes: ReadonlyMap<Pod, string>;
    readonly avoid: ReadonlySet<string>;
  },
): readonly UnmovablePod[] {
  const { cluster, originalNodes, avoid } = context;
  const nodes = cluster.nodeInfos
    .filter((nodeInfo) => nodeInfo.isPresent && !avoid.has(nodeInfo.node.name))
    .map((nodeInfo) => ({
      node: nodeInfo.node.name,
      reasons: runAllFilters(group.pendingPod, nodeInfo, cluster),
    }));
  return group.pods
    .slice(placed)
    .map((pod) => ({ pod, from: originalNodes.get(pod) ?? '', nodes }));
}
