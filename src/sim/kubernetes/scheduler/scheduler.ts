// SPDX-License-Identifier: Apache-2.0
// Binds pending pods to nodes: filters, then the node with the most free share of CPU and memory, as kube-scheduler
// prefers by default. Preemption, and preferences other than free resources, are left out.
import type { Pod } from '../../../model/pod.ts';
import type { Controller, ControllerContext } from '../controllers/controller.ts';
import { toPod } from '../controllers/kubernetes-model.ts';
import { bindPod } from '../storage/eviction.ts';
import { conditionOf, formatTime, listField, statusOf } from '../storage/objects.ts';
import { CLAIMS, NAMESPACES, NODES, PODS } from '../storage/resources.ts';
import { findVolumeRules, provisionOnNode } from '../volumes/scheduling.ts';
import { createPodFilter } from './filters.ts';
import { loadOf, type NodeState, readClusterState } from './node-state.ts';

const NAME = 'default-scheduler';

export const scheduler: Controller = {
  name: NAME,
  watches: [PODS, NODES, NAMESPACES, CLAIMS],
  sync(cluster) {
    const state = readClusterState(cluster);
    for (const pod of state.pending) {
      const volumes = findVolumeRules(cluster, pod);
      const filter = createPodFilter(pod, state);
      const judged = state.nodes.map((node) => ({
        node,
        reason: volumes.problem ?? filter(node) ?? volumes.filter(node.node),
      }));
      const feasible = judged.filter(({ reason }) => reason === undefined).map(({ node }) => node);
      const best = chooseNode(feasible, pod);
      if (best === undefined) {
        reportUnschedulable(
          cluster,
          pod,
          judged.map(({ reason = '' }) => reason),
        );
      } else bind(cluster, pod, best);
    }
    return undefined;
  },
};

export interface PlaceRequest {
  readonly namespace: string;
  readonly name: string;
  /** Nodes that are left out with their pods, as if they were deleted. */
  readonly withoutNodes?: readonly string[];
}

/** The nodes that could run a copy of the pod beside its own, after all pending pods have got their places. */
export function findPlaces(
  cluster: ControllerContext,
  { namespace, name, withoutNodes = [] }: PlaceRequest,
): readonly string[] {
  const object = cluster.find(PODS, namespace, name);
  const pod = object && toPod(object);
  if (pod === undefined) return [];
  const all = readClusterState(cluster, { without: pod });
  const nodes = all.nodes.filter(({ node }) => !withoutNodes.includes(node.name));
  const state = { ...all, nodes };
  for (const other of state.pending) {
    const filter = createPodFilter(other, state);
    const free = state.nodes.filter((node) => filter(node) === undefined);
    chooseNode(free, other)?.add(other);
  }
  const filter = createPodFilter(pod, state);
  return state.nodes
    .filter((node) => node.node.name !== pod.nodeName && filter(node) === undefined)
    .map(({ node }) => node.name);
}

/** The node with the highest average share of free CPU and memory after the pod; the first of equal ones. */
function chooseNode(nodes: readonly NodeState[], pod: Pod): NodeState | undefined {
  let best: { readonly node: NodeState; readonly score: number } | undefined;
  for (const node of nodes) {
    const score = freeShare(node, pod);
    if (best === undefined || score > best.score) best = { node, score };
  }
  return best?.node;
}

function freeShare({ node: { allocatable }, load }: NodeState, pod: Pod): number {
  const share = (total: number, used: number) => (total === 0 ? 0 : (total - used) / total);
  const added = loadOf(pod);
  return (
    share(allocatable.cpuMilli, load.cpuMilli + added.cpuMilli) +
    share(allocatable.memoryBytes, load.memoryBytes + added.memoryBytes)
  );
}

function bind(cluster: ControllerContext, pod: Pod, state: NodeState): void {
  const nodeName = state.node.name;
  const object = cluster.find(PODS, pod.namespace, pod.name);
  if (object === undefined) return;
  cluster.forEach([object], () => {
    provisionOnNode(cluster, pod, nodeName);
    bindPod(cluster.storage, pod, { nodeName, now: cluster.clock.now() });
    state.add({ ...pod, nodeName });
    cluster.emit(NAME, object, {
      type: 'Normal',
      reason: 'Scheduled',
      note: `Successfully assigned ${pod.namespace}/${pod.name} to ${nodeName}`,
    });
  });
}

function reportUnschedulable(
  cluster: ControllerContext,
  pod: Pod,
  reasons: readonly string[],
): void {
  const object = cluster.find(PODS, pod.namespace, pod.name);
  if (object === undefined) return;
  const message = describeReasons(reasons);
  const before = conditionOf(object, 'PodScheduled');
  if (before?.['message'] === message) return;
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message,
    lastTransitionTime: before?.['lastTransitionTime'] ?? formatTime(cluster.clock.now()),
  };
  const others = listField(statusOf(object), 'conditions').filter(
    ({ type }) => type !== 'PodScheduled',
  );
  cluster.updateStatus(PODS, object, { conditions: [...others, condition] });
  cluster.emit(NAME, object, { type: 'Warning', reason: 'FailedScheduling', note: message });
}

/** `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.` */
function describeReasons(reasons: readonly string[]): string {
  if (reasons.length === 0) return 'no nodes available to schedule pods';
  const counts = [...Map.groupBy(reasons, (reason) => reason)]
    .map(([reason, all]) => `${all.length} ${reason}`)
    .sort();
  return `0/${reasons.length} nodes are available: ${counts.join(', ')}.`;
}
