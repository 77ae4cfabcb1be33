// SPDX-License-Identifier: Apache-2.0
// Generates DaemonSets and the pods that their controller would create.

import type { Pod, PodSpec, Toleration } from '../objects.ts';
import type { Random } from '../random.ts';
import { podIdentity } from './labels.ts';
import { addHostPorts, addNodeAffinity, addNodeSelector, addTolerations } from './node-rules.ts';
import { addAffinity, addSpread } from './pod-rules.ts';
import { requests } from './requests.ts';

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

export function daemonSet(random: Random, name: string): DaemonSet {
  const containers = [{ name: 'main', resources: { requests: requests(random, 'small') } }];
  const identity = random.chance(0.5)
    ? { namespace: 'default', labels: { app: 'daemon' } }
    : podIdentity(random, false);
  const pod: Pod = { metadata: { name, uid: name, ...identity }, spec: { containers } };
  if (random.chance(0.3)) addNodeSelector(random, pod);
  if (random.chance(0.2)) addNodeAffinity(random, pod);
  if (random.chance(0.4)) addTolerations(random, pod);
  if (random.chance(0.4)) addNeighbours(random, pod);
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
  return {
    metadata: { name, namespace, uid: `uid-${name}`, labels: template.metadata.labels },
    spec: { ...template.spec, tolerations: [...(template.spec.tolerations ?? []), ...ADDED] },
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
