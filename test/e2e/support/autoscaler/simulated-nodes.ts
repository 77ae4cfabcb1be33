// SPDX-License-Identifier: Apache-2.0
// The nodes of the autoscaler's scheduling simulation: existing Nodes with their free resources, and upcoming nodes from
// the template.
import type { NodeObject } from '../kube-objects.ts';
import {
  type AutoscalerPod,
  type NodeResources,
  parseResources,
  placePod,
  sumRequests,
} from './pods.ts';

export interface SimulatedNode {
  /** Undefined for an upcoming node. */
  readonly node: NodeObject | undefined;
  readonly total: NodeResources;
  readonly free: NodeResources;
}

export function simulateNode(node: NodeObject, pods: readonly AutoscalerPod[]): SimulatedNode {
  const total = parseResources(node.status.allocatable ?? {}, node.metadata.labels);
  const free = { ...total };
  for (const pod of filterPodsOn(node, pods)) {
    const { cpuMilli, memoryBytes } = sumRequests(pod);
    free.cpuMilli -= cpuMilli;
    free.memoryBytes -= memoryBytes;
  }
  return { node, total, free };
}

export function simulateUpcomingNodes(
  template: NodeResources,
  count: number,
): readonly SimulatedNode[] {
  return Array.from({ length: count }, () => ({
    node: undefined,
    total: template,
    free: { ...template },
  }));
}

/** Places pods and subtracts their requests; returns the pods that fit nowhere. */
export function placePods(
  pods: readonly AutoscalerPod[],
  nodes: readonly SimulatedNode[],
): readonly AutoscalerPod[] {
  const free = nodes.map(({ free }) => free);
  return pods.filter((pod) => !placePod(free, pod));
}

export function computeUtilization({ total, free }: SimulatedNode): number {
  return Math.max(1 - free.cpuMilli / total.cpuMilli, 1 - free.memoryBytes / total.memoryBytes);
}

export function filterPodsOn(
  node: NodeObject,
  pods: readonly AutoscalerPod[],
): readonly AutoscalerPod[] {
  return pods.filter(({ spec }) => spec.nodeName === node.metadata.name);
}
