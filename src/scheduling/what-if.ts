// SPDX-License-Identifier: Apache-2.0
// Derives a snapshot with one change. The cost is proportional to the change, and derived snapshots can be
// derived from.

import type { Node } from '../model/node.ts';
import type { Pod } from '../model/pod.ts';
import { runAllFilters } from './filters/all.ts';
import { newPlacedPodOn } from './filters/volume-binding.ts';
import { daemonPodsOf } from './pack/machine-template.ts';
import type { Snapshot } from './snapshot.ts';
import type { ClusterState } from './state/cluster-state.ts';
import type { NodeInfo } from './state/node-info.ts';
import { newPendingPod } from './state/pending-pod.ts';

/** With the pod placed on the node, whether or not it fits. Volumes that the pod would get are reserved. */
export function withPod(snapshot: Snapshot, pod: Pod, nodeName: string): Snapshot {
  return snapshot.fork((draft) => {
    const { cluster } = draft;
    const nodeInfo = requireNodeInfo(cluster, nodeName);
    draft.addPod(newPlacedPodOn(nodeInfo, { ...pod, nodeName }, cluster), nodeInfo);
  });
}

/** Without the pod of this namespace and name. */
export function withoutPod(snapshot: Snapshot, pod: Pod, nodeName: string): Snapshot {
  return snapshot.fork((draft) => {
    const nodeInfo = requireNodeInfo(draft.cluster, nodeName);
    for (const placedPod of nodeInfo.placedPods.toReversed()) {
      const isSame = placedPod.pod.name === pod.name && placedPod.pod.namespace === pod.namespace;
      if (isSame) draft.removePod(placedPod, nodeInfo);
    }
  });
}

/** With these nodes added. Throws for a node whose name is in the snapshot, which is a mistake of the caller. */
export function withNodes(snapshot: Snapshot, nodes: readonly Node[]): Snapshot {
  return snapshot.fork((draft) => {
    for (const node of nodes) draft.addNode(node);
  });
}

/**
 * With these nodes, which will join, instead of nodes of the same name. Each has the pods that are on it, and the
 * DaemonSet pods that will be.
 */
export function withExpectedNodes(snapshot: Snapshot, nodes: readonly Node[]): Snapshot {
  return snapshot.fork((draft) => {
    const { cluster } = draft;
    for (const node of nodes) {
      const present = cluster.nodeInfo(node.name);
      const pods = present === undefined ? [] : present.placedPods.map(({ pod }) => pod);
      if (present !== undefined) draft.removeNode(present);
      const nodeInfo = draft.addNode(node);
      const running = new Set(pods.map(({ controller }) => controller?.uid));
      const daemons = daemonPodsOf(node, snapshot.daemonSets, cluster).filter(
        ({ controller }) => !running.has(controller?.uid),
      );
      for (const pod of [...pods, ...daemons])
        draft.addPod(newPlacedPodOn(nodeInfo, pod, cluster), nodeInfo);
    }
  });
}

/** With the pods placed on their nodes, in this order, whether or not they fit. */
export function withPods(
  snapshot: Snapshot,
  placements: readonly { readonly pod: Pod; readonly node: string }[],
): Snapshot {
  return snapshot.fork((draft) => {
    for (const { pod, node } of placements) {
      const nodeInfo = requireNodeInfo(draft.cluster, node);
      draft.addPod(newPlacedPodOn(nodeInfo, { ...pod, nodeName: node }, draft.cluster), nodeInfo);
    }
  });
}

/** Without these nodes and their pods. Names may occur more than once. */
export function withoutNodes(snapshot: Snapshot, names: readonly string[]): Snapshot {
  return snapshot.fork((draft) => {
    for (const name of new Set(names)) draft.removeNode(requireNodeInfo(draft.cluster, name));
  });
}

function requireNodeInfo(cluster: ClusterState, name: string): NodeInfo {
  const nodeInfo = cluster.nodeInfo(name);
  if (nodeInfo === undefined) throw new RangeError(`node '${name}' is not in this snapshot`);
  return nodeInfo;
}

export interface FittingPods {
  readonly snapshot: Snapshot;
  readonly placed: readonly { readonly pod: Pod; readonly node: string }[];
}

/** With each pod placed on its node if it fits there, in this order. */
export function withFittingPods(
  snapshot: Snapshot,
  placements: readonly { readonly pod: Pod; readonly node: string }[],
): FittingPods {
  const placed: { readonly pod: Pod; readonly node: string }[] = [];
  const after = snapshot.fork((draft) => {
    const { cluster } = draft;
    for (const one of placements) {
      const nodeInfo = cluster.nodeInfo(one.node);
      if (nodeInfo === undefined) continue;
      if (runAllFilters(newPendingPod(one.pod, cluster), nodeInfo, cluster).length > 0) continue;
      const pod = { ...one.pod, nodeName: one.node };
      draft.addPod(newPlacedPodOn(nodeInfo, pod, cluster), nodeInfo);
      placed.push(one);
    }
  });
  return { snapshot: after, placed };
}
