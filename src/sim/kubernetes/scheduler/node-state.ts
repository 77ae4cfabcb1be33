// SPDX-License-Identifier: Apache-2.0
// The nodes and their pods as the scheduler sees them. Bindings of the running sync are added at once.
import type { Labels } from '../../../model/labels.ts';
import type { Node } from '../../../model/node.ts';
import type { Pod } from '../../../model/pod.ts';
import { addResources, NO_RESOURCES, type Resources } from '../../../model/resources.ts';
import type { ControllerContext } from '../controllers/controller.ts';
import { toNode, toPod } from '../controllers/kubernetes-model.ts';
import { labelsOf } from '../storage/objects.ts';
import { NAMESPACES, NODES, PODS } from '../storage/resources.ts';

/** What a container without requests counts as when nodes are compared, as in kube-scheduler. */
const DEFAULT_CPU_MILLI = 100;
const DEFAULT_MEMORY_BYTES = 200 * 2 ** 20;

/** What the pod adds to the load of a node when nodes are compared. */
export function loadOf({ requests: { cpuMilli, memoryBytes } }: Pod) {
  return {
    cpuMilli: cpuMilli || DEFAULT_CPU_MILLI,
    memoryBytes: memoryBytes || DEFAULT_MEMORY_BYTES,
  };
}

export class NodeState {
  readonly node: Node;
  readonly pods: Pod[] = [];
  requested: Resources = NO_RESOURCES;
  readonly load = { cpuMilli: 0, memoryBytes: 0 };

  constructor(node: Node) {
    this.node = node;
  }

  add(pod: Pod): void {
    this.pods.push(pod);
    this.requested = addResources(this.requested, pod.held);
    const { cpuMilli, memoryBytes } = loadOf(pod);
    this.load.cpuMilli += cpuMilli;
    this.load.memoryBytes += memoryBytes;
  }
}

export interface ClusterState {
  readonly nodes: readonly NodeState[];
  /** Pods without a node that may be scheduled, in the order of the queue. */
  readonly pending: readonly Pod[];
  /** Labels of namespaces, by name. */
  readonly namespaces: ReadonlyMap<string, Labels>;
}

/** `without`: a pod that is left out, as if it were deleted. */
export function readClusterState(
  cluster: ControllerContext,
  { without }: { readonly without?: Pod } = {},
): ClusterState {
  const nodes = cluster
    .list(NODES)
    .map(toNode)
    .filter((node) => node !== undefined)
    .map((node) => new NodeState(node));
  const byName = new Map(nodes.map((state) => [state.node.name, state]));
  const pending: { readonly pod: Pod; readonly createdAt: string }[] = [];
  for (const object of cluster.list(PODS)) {
    const pod = toPod(object);
    if (pod === undefined || pod.isFinished || pod.uid === without?.uid) continue;
    if (pod.nodeName !== '') byName.get(pod.nodeName)?.add(pod);
    else if (!pod.isTerminating && !pod.isGated) {
      pending.push({ pod, createdAt: object.metadata.creationTimestamp });
    }
  }
  pending.sort(
    (one, other) =>
      other.pod.priority - one.pod.priority || (one.createdAt < other.createdAt ? -1 : 1),
  );
  return {
    nodes,
    pending: pending.map(({ pod }) => pod),
    namespaces: new Map(
      cluster.list(NAMESPACES).map((object) => [object.metadata.name, labelsOf(object)]),
    ),
  };
}
