// SPDX-License-Identifier: Apache-2.0
// Generates DaemonSets and the pods that their controller would create.

import type { Container, Pod, PodSpec, Toleration } from '../objects.ts';
import type { Random } from '../random.ts';
import { podIdentity } from './labels.ts';
import { addHostPorts, addNodeAffinity, addNodeSelector, addTolerations } from './node-rules.ts';
import { addAffinity, addSpread } from './pod-rules.ts';
import { addInitContainers, requests } from './requests.ts';

export interface DaemonSet {
  metadata: { name: string; namespace: string; uid: string };
  spec: { template: { metadata: { labels: Record<string, string> }; spec: PodSpec } };
}

const ADDED: readonly Toleration[] = [
  ['not-ready', 'NoExecute'],
  ['unreachable', 'NoExecute'],
  ['disk-pressure', 'NoSchedule'],
  ['memory-pressure', 'NoSchedule'],
  ['pid-pressure', 'NoSchedule'],
  ['unschedulable', 'NoSchedule'],
].map(([name, effect = '']) => ({
  key: `node.kubernetes.io/${name}`,
  operator: 'Exists',
  effect,
}));

const ADDED_ON_HOST_NETWORK: Toleration = {
  key: 'node.kubernetes.io/network-unavailable',
  operator: 'Exists',
  effect: 'NoSchedule',
};

/** A template is not defaulted as a pod is: limits without requests, ports of the host's network. */
function daemonContainer(random: Random): Container {
  const made: Container = { name: 'main', resources: { requests: requests(random, 'small') } };
  if (random.chance(0.4)) {
    const limits = requests(random, random.chance(0.3) ? 'large' : 'small');
    if (random.chance(0.2)) limits['nvidia.com/gpu'] = '1';
    made.resources = { ...(random.chance(0.3) ? { requests: { cpu: '50m' } } : {}), limits };
  }
  return made;
}

function addHostNetwork(random: Random, { spec }: Pod): void {
  spec.hostNetwork = true;
  for (const one of spec.containers) {
    const containerPort = random.pick([80, 443]);
    one.ports = [{ containerPort, ...(random.chance(0.3) ? { hostPort: containerPort } : {}) }];
  }
}

function addPodLevelLimits(random: Random, { spec }: Pod): void {
  const limits = { cpu: random.pick(['1', '3500m']), memory: random.pick(['1Gi', '5Gi']) };
  spec.resources = random.chance(0.5) ? { limits } : { limits, requests: { cpu: '600m' } };
}

export function daemonSet(random: Random, name: string): DaemonSet {
  const containers = [daemonContainer(random)];
  const identity = random.chance(0.5)
    ? { namespace: 'default', labels: { app: 'daemon' } }
    : podIdentity(random, false);
  const pod: Pod = { metadata: { name, uid: name, ...identity }, spec: { containers } };
  if (random.chance(0.3)) addNodeSelector(random, pod);
  if (random.chance(0.2)) addNodeAffinity(random, pod);
  if (random.chance(0.4)) addTolerations(random, pod);
  if (random.chance(0.4)) addNeighbours(random, pod);
  if (random.chance(0.2)) addHostNetwork(random, pod);
  if (random.chance(0.1)) addInitContainers(random, pod, ['sidecar', 'plain']);
  if (random.chance(0.1)) addPodLevelLimits(random, pod);
  return {
    metadata: { name, namespace: identity.namespace, uid: `uid-${name}` },
    spec: { template: { metadata: { labels: identity.labels }, spec: pod.spec } },
  };
}

function addNeighbours(random: Random, pod: Pod): void {
  const kind = random.pick(['ports', 'affinity', 'anti-affinity', 'anti-affinity', 'spread']);
  if (kind === 'ports') addHostPorts(random, pod);
  else if (kind === 'affinity') addAffinity(random, pod, 'podAffinity');
  else if (kind === 'anti-affinity') addAffinity(random, pod, 'podAntiAffinity');
  else addSpread(random, pod);
}

/** The pod with which the controller checks a node before it creates a pod there. */
export function templatePod({ metadata, spec: { template } }: DaemonSet): Pod {
  const { name, namespace } = metadata;
  const tolerations = [
    ...(template.spec.tolerations ?? []),
    ...ADDED,
    ...(template.spec.hostNetwork === true ? [ADDED_ON_HOST_NETWORK] : []),
  ];
  return {
    metadata: { name, namespace, uid: `uid-${name}`, labels: template.metadata.labels },
    spec: { ...template.spec, tolerations },
  };
}

/** The pod that the controller creates: the node's name replaces the required node affinity. */
export function daemonPod(set: DaemonSet, node: string): Pod {
  const { metadata, spec } = templatePod(set);
  const name = `${metadata.name}-${node}`;
  const byName = { key: 'metadata.name', operator: 'In', values: [node] };
  const nodeAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchFields: [byName] }],
    },
  };
  return {
    metadata: { ...metadata, name, uid: `uid-${name}` },
    spec: { ...spec, affinity: { ...spec.affinity, nodeAffinity } },
  };
}
