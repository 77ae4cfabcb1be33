// SPDX-License-Identifier: Apache-2.0
// Creates and deletes pods until a ReplicaSet has its number of replicas.
import {
  isTerminating,
  numberField,
  objectField,
  type SimObject,
  specOf,
  textField,
} from '../storage/objects.ts';
import { PODS, REPLICA_SETS } from '../storage/resources.ts';
import {
  type Controller,
  type ControllerContext,
  isFinished,
  isReady,
  podFromTemplate,
  podPhase,
  podsByController,
} from './controller.ts';

export const replicaSetController: Controller = {
  name: 'replicaset-controller',
  watches: [REPLICA_SETS, PODS],
  sync(cluster) {
    const pods = podsByController(cluster);
    cluster.forEach(cluster.list(REPLICA_SETS), (set) =>
      syncReplicaSet(cluster, set, pods.get(set.metadata.uid) ?? []),
    );
    return undefined;
  },
};

function syncReplicaSet(
  cluster: ControllerContext,
  set: SimObject,
  owned: readonly SimObject[],
): void {
  const active = owned.filter((pod) => !isTerminating(pod) && !isFinished(pod));
  if (!isTerminating(set)) scale(cluster, set, active);
  const ready = active.filter(isReady).length;
  cluster.updateStatus(REPLICA_SETS, set, {
    replicas: active.length,
    fullyLabeledReplicas: active.length,
    readyReplicas: ready,
    availableReplicas: ready,
    observedGeneration: set.metadata['generation'] ?? 1,
  });
}

function scale(cluster: ControllerContext, set: SimObject, active: readonly SimObject[]): void {
  const spec = specOf(set);
  const missing = numberField(spec, 'replicas', 1) - active.length;
  const { name, namespace = '' } = set.metadata;
  for (let count = 0; count < missing; count += 1) {
    const metadata = { generateName: `${name}-` };
    const pod = podFromTemplate(set, objectField(spec, 'template'), { metadata });
    cluster.create(PODS, pod, namespace);
  }
  if (missing >= 0) return;
  for (const pod of rankForDeletion(active).slice(0, -missing)) cluster.delete(PODS, pod);
}

/** Pods that are least useful first: unassigned, pending, not ready, many on one node, youngest. */
export function rankForDeletion(pods: readonly SimObject[]): readonly SimObject[] {
  const nodeOf = (pod: SimObject) => textField(specOf(pod), 'nodeName');
  const perNode = Map.groupBy(pods, nodeOf);
  const rank = (pod: SimObject): readonly number[] => [
    nodeOf(pod) === '' ? 0 : 1,
    podPhase(pod) === 'Pending' ? 0 : 1,
    isReady(pod) ? 1 : 0,
    -(perNode.get(nodeOf(pod))?.length ?? 0),
    -Date.parse(pod.metadata.creationTimestamp),
  ];
  return pods.toSorted((one, other) => compareRanks(rank(one), rank(other)));
}

function compareRanks(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((value, index) => value !== other[index]);
  return at < 0 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
}
