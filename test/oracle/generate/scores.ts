// SPDX-License-Identifier: Apache-2.0
// Generates a cluster with one node to be drained, whose only pod the scheduler must place again. Resource requests are
// large compared with the nodes, so that scores differ.

import {
  type Cluster,
  emptyCluster,
  type Node,
  type Pod,
  type ReplicaSet,
  type SpreadConstraint,
} from '../objects.ts';
import { Random } from '../random.ts';
import { HOSTNAME, namespaces, podIdentity, podSelector, RACK, ZONE } from './labels.ts';
import { nodes } from './nodes.ts';

export interface ScoreCase {
  /** With the drained node and its pod. */
  readonly cluster: Cluster;
  readonly drained: string;
  readonly pod: Pod;
  readonly replicaSets: readonly ReplicaSet[];
}

const SLOW = { key: 'slow', value: 'true', effect: 'PreferNoSchedule' };
const OLD = { key: 'old', effect: 'PreferNoSchedule' };

function smallNode(random: Random, node: Node): Node {
  const size = random.pick([
    { cpu: '2', memory: '2Gi' },
    { cpu: '4', memory: '8Gi' },
    { cpu: '3920m', memory: '7500Mi' },
  ]);
  const taints = [
    ...(random.chance(0.2) ? [SLOW] : []),
    ...(random.chance(0.2) ? [OLD] : []),
    ...(random.chance(0.05) ? [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }] : []),
  ];
  const { taints: _, ...spec } = node.spec;
  return {
    ...node,
    spec: { ...spec, ...(taints.length > 0 && { taints }) },
    status: { allocatable: { ...size, pods: '110' } },
  };
}

/** The scheduler assumes requests where a container has none; the simulation does not. */
function newPod(random: Random, name: string, isCrowd: boolean): Pod {
  const requests = {
    cpu: random.pick(['10m', '50m', '100m', '250m', '333m', '500m', '1']),
    memory: random.pick(['16Mi', '64Mi', '100M', '256Mi', '700Mi', '1Gi']),
  };
  return {
    metadata: { name, uid: `uid-${name}`, ...podIdentity(random, isCrowd) },
    spec: { containers: [{ name: 'app', resources: { requests } }] },
  };
}

function softConstraint(random: Random, topologyKey: string): SpreadConstraint {
  const made: SpreadConstraint = {
    maxSkew: random.pick([1, 1, 2, 5]),
    topologyKey,
    whenUnsatisfiable: random.chance(0.85) ? 'ScheduleAnyway' : 'DoNotSchedule',
    labelSelector: podSelector(random),
  };
  if (random.chance(0.2)) made.nodeAffinityPolicy = random.pick(['Ignore', 'Honor']);
  if (random.chance(0.2)) made.nodeTaintsPolicy = random.pick(['Honor', 'Ignore']);
  if (random.chance(0.2)) made.matchLabelKeys = ['rev'];
  return made;
}

function addPreferredNodes(random: Random, pod: Pod): void {
  const preferred = random.times(random.int(1, 3), () => ({
    weight: random.pick([1, 10, 50, 100]),
    preference: {
      matchExpressions: [
        random.pick([
          { key: 'disk', operator: 'In', values: ['ssd'] },
          { key: RACK, operator: 'NotIn', values: ['r1', 'r2'] },
          { key: 'cores', operator: 'Gt', values: ['6'] },
          { key: ZONE, operator: 'Exists' },
        ]),
      ],
    },
  }));
  pod.spec.affinity = {
    nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred },
  };
}

/** Its pods have its labels, and those that other pods have, too. */
function controllerOf(random: Random, pod: Pod): ReplicaSet {
  const { namespace, labels = {} } = pod.metadata;
  const kind = 'ReplicaSet';
  pod.metadata.ownerReferences = [
    { apiVersion: 'apps/v1', kind, name: 'owner', uid: 'owner', controller: true },
  ];
  if (random.chance(0.5)) pod.metadata.labels = { app: 'web' };
  const matchLabels = pod.metadata.labels ?? labels;
  return {
    metadata: { name: 'owner', namespace, uid: 'owner' },
    spec: { selector: { matchLabels } },
  };
}

export function randomScoreCase(seed: number): ScoreCase {
  const random = new Random(seed);
  const all = nodes(random).map((node) => smallNode(random, node));
  const isCrowd = random.chance(0.5);
  const pods = random.times(random.int(4, 30), (index) => {
    const pod = newPod(random, `r${index}`, isCrowd);
    pod.spec.nodeName = random.pick(all).metadata.name;
    pod.status = { phase: random.chance(0.05) ? 'Succeeded' : 'Running' };
    if (random.chance(0.08)) pod.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    return pod;
  });
  const pod = newPod(random, 'moved', isCrowd);
  if (random.chance(0.4))
    pod.spec.topologySpreadConstraints = random
      .some([ZONE, HOSTNAME, RACK], 0.4)
      .map((key) => softConstraint(random, key));
  if (random.chance(0.4)) addPreferredNodes(random, pod);
  if (random.chance(0.3)) pod.spec.tolerations = [{ key: 'slow', operator: 'Exists' }];
  if (random.chance(0.1)) pod.spec.nodeSelector = { disk: 'ssd' };
  const replicaSets =
    random.chance(0.6) && Object.keys(pod.metadata.labels ?? {}).length > 0
      ? [controllerOf(random, pod)]
      : [];
  const drained = 'drained';
  const allocatable = { cpu: '4', memory: '8Gi', pods: '110' };
  const from = { metadata: { name: drained, labels: {} }, spec: {}, status: { allocatable } };
  const cluster: Cluster = {
    ...emptyCluster(),
    nodes: [...all, from],
    pods: [
      ...pods,
      { ...pod, spec: { ...pod.spec, nodeName: drained }, status: { phase: 'Running' } },
    ],
    namespaces: namespaces(random),
  };
  return { cluster, drained, pod, replicaSets };
}
