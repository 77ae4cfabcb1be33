// SPDX-License-Identifier: Apache-2.0
// All filters in the scheduler's order. The scheduler stops at the first rejection; here all of them run, so
// that every reason is reported.

import type { FilterName, FilterReason } from '../reasons.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { NodeInfo } from '../state/node-info.ts';
import type { PendingPod } from '../state/pending-pod.ts';
import type { Filter } from './filter.ts';
import { nodePorts } from './node-ports.ts';
import { nodeResourcesFit } from './node-resources.ts';
import {
  dynamicResources,
  nodeAffinity,
  nodeDeclaredFeatures,
  nodeName,
  nodeUnschedulable,
  taintToleration,
} from './node-rules.ts';
import { interPodAffinity, podAffinity, podAntiAffinity } from './pod-affinity.ts';
import { podTopologySpread } from './topology-spread.ts';
import { volumeBinding } from './volume-binding.ts';
import { nodeVolumeLimits } from './volume-limits.ts';
import { volumeRestrictions } from './volume-restrictions.ts';
import { volumeZone } from './volume-zone.ts';

const FILTERS_BY_NAME: Readonly<Record<FilterName, Filter>> = {
  NodeUnschedulable: nodeUnschedulable,
  NodeName: nodeName,
  TaintToleration: taintToleration,
  NodeAffinity: nodeAffinity,
  NodeDeclaredFeatures: nodeDeclaredFeatures,
  DynamicResources: dynamicResources,
  NodePorts: nodePorts,
  NodeResourcesFit: nodeResourcesFit,
  VolumeRestrictions: volumeRestrictions,
  NodeVolumeLimits: nodeVolumeLimits,
  VolumeBinding: volumeBinding,
  VolumeZone: volumeZone,
  PodTopologySpread: podTopologySpread,
  InterPodAffinity: interPodAffinity,
};
const ALL_FILTERS: readonly Filter[] = Object.values(FILTERS_BY_NAME);

/** Depend only on the node and the pod. */
const NODE_RULE_FILTERS: readonly Filter[] = [
  nodeUnschedulable,
  nodeName,
  taintToleration,
  nodeAffinity,
  nodeDeclaredFeatures,
  dynamicResources,
];

/** Depend on the pods of the node. Adding pods never turns a rejection into an acceptance. */
const PERMANENT_FILTERS: readonly Filter[] = [
  podAntiAffinity,
  nodePorts,
  volumeRestrictions,
  nodeVolumeLimits,
  volumeBinding,
  volumeZone,
];

/** Depend also on pods elsewhere. Adding a pod may turn a rejection into an acceptance. */
const REVERSIBLE_FILTERS: readonly Filter[] = [podTopologySpread, podAffinity];

export function runAllFilters(
  pendingPod: PendingPod,
  nodeInfo: NodeInfo,
  cluster: ClusterState,
): readonly FilterReason[] {
  return ALL_FILTERS.flatMap((filter) => filter(pendingPod, nodeInfo, cluster) ?? []);
}

export function passesNodeRules(
  pendingPod: PendingPod,
  nodeInfo: NodeInfo,
  cluster: ClusterState,
): boolean {
  return NODE_RULE_FILTERS.every((filter) => filter(pendingPod, nodeInfo, cluster) === undefined);
}

/** Except for resources. */
export function isPermanentlyRejected(
  pendingPod: PendingPod,
  nodeInfo: NodeInfo,
  cluster: ClusterState,
): boolean {
  return PERMANENT_FILTERS.some((filter) => filter(pendingPod, nodeInfo, cluster) !== undefined);
}

export function isReversiblyRejected(
  pendingPod: PendingPod,
  nodeInfo: NodeInfo,
  cluster: ClusterState,
): boolean {
  return REVERSIBLE_FILTERS.some((filter) => filter(pendingPod, nodeInfo, cluster) !== undefined);
}
