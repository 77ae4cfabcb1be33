// SPDX-License-Identifier: Apache-2.0
// Whether the scheduler would place a pod on a node.

import type { Pod } from '../model/pod.ts';
import { rivalsOf, runAllFiltersWith } from './filters/nominated.ts';
import type { FitResult } from './reasons.ts';
import type { Snapshot } from './snapshot.ts';
import { newPendingPod } from './state/pending-pod.ts';

/**
 * Runs every filter and returns all reasons against the node. Throws for a node that is not in the snapshot,
 * which is a mistake of the caller.
 */
export function checkFit(snapshot: Snapshot, pod: Pod, nodeName: string): FitResult {
  const cluster = snapshot.activate();
  const nodeInfo = cluster.nodeInfo(nodeName);
  if (nodeInfo === undefined) throw new RangeError(`node '${nodeName}' is not in this snapshot`);
  const rivals = rivalsOf(pod, snapshot.nominated.get(nodeName));
  const pendingPod = newPendingPod(pod, cluster);
  const reasons = runAllFiltersWith(rivals, { pendingPod, nodeInfo, cluster });
  return reasons.length === 0 ? { fits: true } : { fits: false, reasons };
}
