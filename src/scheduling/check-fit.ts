// SPDX-License-Identifier: Apache-2.0
// Whether the scheduler would place a pod on a node.

import type { Pod } from '../model/pod.ts';
import { runAllFilters } from './filters/all.ts';
import type { FilterReason, FitResult } from './reasons.ts';
import { Draft, type Snapshot } from './snapshot.ts';
import type { ClusterState } from './state/cluster-state.ts';
import type { NodeInfo } from './state/node-info.ts';
import { newPendingPod } from './state/pending-pod.ts';

/**
 * Runs every filter and returns all reasons against the node. Throws for a node that is not in the snapshot,
 * which is a mistake of the caller.
 */
export function checkFit(snapshot: Snapshot, pod: Pod, nodeName: string): FitResult {
  const cluster = snapshot.activate();
  const nodeInfo = cluster.nodeInfo(nodeName);
  if (nodeInfo === undefined) throw new RangeError(`node '${nodeName}' is not in this snapshot`);
  const reasons = reasonsAgainst(cluster, pod, nodeInfo);
  const all = reasons.length > 0 ? reasons : reasonsWithNominated(snapshot, pod, nodeInfo);
  return all.length === 0 ? { fits: true } : { fits: false, reasons: all };
}

function reasonsAgainst(
  cluster: ClusterState,
  pod: Pod,
  nodeInfo: NodeInfo,
): readonly FilterReason[] {
  return runAllFilters(newPendingPod(pod, cluster), nodeInfo, cluster);
}

// The scheduler is preempting pods on the node for nominated pods. Those of equal or higher priority count as
// placed. The pod must also fit without them, since they may be placed elsewhere.
function reasonsWithNominated(
  snapshot: Snapshot,
  pod: Pod,
  nodeInfo: NodeInfo,
): readonly FilterReason[] {
  const nominated = (snapshot.nominated.get(nodeInfo.node.name) ?? []).filter(
    (other) => other.priority >= pod.priority && other.uid !== pod.uid,
  );
  if (nominated.length === 0) return [];
  const draft = new Draft(snapshot.activate());
  try {
    for (const other of nominated)
      draft.addPod(draft.cluster.newPlacedPod(other, other.requests), nodeInfo);
    return reasonsAgainst(draft.cluster, pod, nodeInfo);
  } finally {
    draft.undo();
  }
}
