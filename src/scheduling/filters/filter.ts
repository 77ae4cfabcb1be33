// SPDX-License-Identifier: Apache-2.0
import type { FilterReason } from '../reasons.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { NodeInfo } from '../state/node-info.ts';
import type { PendingPod } from '../state/pending-pod.ts';

/** Returns undefined if the node passes. */
export type Filter = (
  pendingPod: PendingPod,
  nodeInfo: NodeInfo,
  cluster: ClusterState,
) => FilterReason | undefined;
