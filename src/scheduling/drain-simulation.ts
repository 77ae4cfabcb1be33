// SPDX-License-Identifier: Apache-2.0
// Simulates draining nodes: a new node for every pod, or the pods that fit nowhere else. A drained node gets no pod, but
// topology spread counts it until it is deleted: a pod that fits only then would be pending until then.

import type { Node } from '../model/node.ts';
import { isDaemonSetPod, type Pod } from '../model/pod.ts';
import { DrainSearch } from './drain-search.ts';
import { DrainTargets } from './drain-targets.ts';
import { runAllFiltersWith } from './filters/nominated.ts';
import { newPlacedPodOn } from './filters/volume-binding.ts';
import type { FilterReason } from './reasons.ts';
import { Draft, type Snapshot } from './snapshot.ts';
import type { NodeInfo } from './state/node-info.ts';
import { newPendingPod } from './state/pending-pod.ts';
import type { MovingPod } from './state/placed-pod.ts';

export interface DrainSimulationOptions {
  /** Pods of lower priority may be deleted without a replacement. */
  readonly expendableBelow?: number;
  /** Nodes that must not get pods, for example because they will be drained too. */
  readonly avoid?: ReadonlySet<string>;
  /** Simulates the time after the drained nodes were deleted. */
  readonly isAfterDeletion?: boolean;
}

export interface PodMove {
  readonly pod: Pod;
  readonly from: string;
  readonly to: string;
}

export interface UnmovablePod {
  readonly pod: Pod;
  readonly from: string;
  /** For every node that was checked, the reasons against it. Computed when it is read. */
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

const NO_NODES: ReadonlySet<string> = new Set();

/** Names may occur more than once. Nominated pods keep the space on their node, whatever their priority. */
export function simulateDrain(
  snapshot: Snapshot,
  nodeNames: readonly string[],
  options: DrainSimulationOptions = {},
): DrainSimulation {
  const cluster = snapshot.activate();
  const draft = new Draft(cluster);
  const targets = DrainTargets.of(cluster);
  const search = new DrainSearch(draft, targets, {
    avoid: options.avoid ?? NO_NODES,
    nominated: snapshot.nominated,
  });
  const drained = new Set(nodeNames);
  const nodeInfos = Array.from(drained, (name) => requireNodeInfo(draft, name));
  try {
    const originalNodes = new Map<MovingPod, string>();
    const { nominated } = snapshot;
    const { expendableBelow } = options;
    for (const nodeInfo of nodeInfos) {
      for (const moving of podsToMove(nodeInfo, { targets, nominated, expendableBelow }))
        originalNodes.set(moving, nodeInfo.node.name);
    }
    for (const nodeInfo of nodeInfos) {
      leaveNode(draft, nodeInfo, options);
      targets.close(nodeInfo);
    }
    const moves = search.place([...originalNodes.keys()]).map(({ moving, nodeInfo }) => ({
      pod: moving.pendingPod.pod,
      from: originalNodes.get(moving) ?? '',
      to: nodeInfo.node.name,
    }));
    const moved = new Set(moves.map(({ pod }) => pod));
    const left = [...originalNodes].filter(([{ pendingPod }]) => !moved.has(pendingPod.pod));
    if (left.length === 0) return { isPossible: true, moves };
    const result = new DrainedCluster(snapshot, { drained, moves, options });
    const unmovable = left.map(([{ pendingPod }, from]) => result.unmovable(pendingPod.pod, from));
    return { isPossible: false, unmovable, moves };
  } finally {
    draft.undo();
    for (const nodeInfo of nodeInfos) targets.open(nodeInfo);
  }
}

interface NodeToDrain {
  readonly targets: DrainTargets;
  readonly nominated: Snapshot['nominated'];
  readonly expendableBelow: number | undefined;
}

/** The pods of the node that need another one, including those that the scheduler is about to place there. */
export function podsToMove(
  nodeInfo: NodeInfo,
  { targets, nominated, expendableBelow = -Infinity }: NodeToDrain,
): readonly MovingPod[] {
  const moving: MovingPod[] = [];
  for (const placedPod of nodeInfo.placedPods)
    if (needsNewNode(placedPod.pod, expendableBelow)) moving.push(targets.movingPod(placedPod));
  for (const pod of nominated.get(nodeInfo.node.name) ?? [])
    if (needsNewNode(pod, expendableBelow)) moving.push(targets.newMovingPod(pod));
  return moving;
}

/**
 * DaemonSet pods and static pods belong to the node. A terminating pod needs no new node, but that of a StatefulSet is created
 * again when it is gone: other controllers create theirs at once, and it is pending meanwhile.
 */
function needsNewNode(pod: Pod, expendableBelow: number): boolean {
  if (isDaemonSetPod(pod) || pod.isMirror) return false;
  if (pod.isTerminating && pod.controller?.kind !== 'StatefulSet') return false;
  return pod.priority >= expendableBelow;
}

function requireNodeInfo({ cluster }: Draft, name: string): NodeInfo {
  const nodeInfo = cluster.nodeInfo(name);
  if (nodeInfo === undefined) throw new RangeError(`node '${name}' is not in this snapshot`);
  return nodeInfo;
}

function leaveNode(
  draft: Draft,
  nodeInfo: NodeInfo,
  { isAfterDeletion }: Pick<DrainSimulationOptions, 'isAfterDeletion'>,
): void {
  if (isAfterDeletion === true) draft.removeNode(nodeInfo);
  else emptyNode(draft, nodeInfo);
}

/** Removes all pods that do not belong to the node. */
export function emptyNode(draft: Draft, nodeInfo: NodeInfo): void {
  for (const placedPod of nodeInfo.placedPods.toReversed())
    if (!isDaemonSetPod(placedPod.pod) && !placedPod.pod.isMirror)
      draft.removePod(placedPod, nodeInfo);
}

interface DrainResult {
  readonly drained: ReadonlySet<string>;
  readonly moves: readonly PodMove[];
  readonly options: DrainSimulationOptions;
}

/**
 * The cluster after the drain. It explains why a pod fits nowhere, which costs a check of every node: only for
 * the caller that reads it.
 */
class DrainedCluster {
  readonly #snapshot: Snapshot;
  readonly #result: DrainResult;
  #after: Snapshot | undefined;

  constructor(snapshot: Snapshot, result: DrainResult) {
    this.#snapshot = snapshot;
    this.#result = result;
  }

  unmovable(pod: Pod, from: string): UnmovablePod {
    const explain = (): UnmovablePod['nodes'] => this.#explain(pod);
    let known: UnmovablePod['nodes'] | undefined;
    return {
      pod,
      from,
      get nodes() {
        known ??= explain();
        return known;
      },
    };
  }

  #explain(pod: Pod): UnmovablePod['nodes'] {
    const { drained, options } = this.#result;
    this.#after ??= this.#snapshot.fork((draft) => this.#drain(draft));
    const cluster = this.#after.activate();
    const pendingPod = newPendingPod(pod, cluster);
    const isTarget = ({ name }: Node) => !drained.has(name) && options.avoid?.has(name) !== true;
    return cluster.nodeInfos
      .filter(({ isPresent, node }) => isPresent && isTarget(node))
      .map((nodeInfo) => ({
        node: nodeInfo.node.name,
        reasons: runAllFiltersWith(this.#snapshot.nominated.get(nodeInfo.node.name) ?? [], {
          pendingPod,
          nodeInfo,
          cluster,
        }),
      }));
  }

  #drain(draft: Draft): void {
    const { drained, moves, options } = this.#result;
    for (const name of drained) leaveNode(draft, requireNodeInfo(draft, name), options);
    for (const { pod, to } of moves) {
      const nodeInfo = draft.cluster.nodeInfo(to);
      if (nodeInfo !== undefined)
        draft.addPod(newPlacedPodOn(nodeInfo, pod, draft.cluster), nodeInfo);
    }
  }
}
