// SPDX-License-Identifier: Apache-2.0
// DaemonSets, and the pods that their controller would make of them.

import type { Pod, PodSpec, Toleration } from '../objects.ts';
import type { Random } from '../random.ts';
import { requests } from './requests.ts';
import { addNodeAffinity, addNodeSelector, addTolerations } from './rules.ts';

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
  const pod: Pod = { metadata: { name, namespace: 'default', uid: name }, spec: { containers } };
  if (random.chance(0.3)) addNodeSelector(random, pod);
  if (random.chance(0.2)) addNodeAffinity(random, pod);
  if (random.chance(0.4)) addTolerations(random, pod);
  return {
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    spec: { template: { metadata: { labels: { app: 'daemon' } }, spec: pod.spec } },
  };
}

export function daemonPod({ metadata, spec: { template } }: DaemonSet, node: string): Pod {
  const { namespace } = metadata;
  const name = `${metadata.name}-${node}`;
  return {
    metadata: { name, namespace, uid: `uid-${name}`, labels: template.metadata.labels },
    spec: { ...template.spec, tolerations: [...(template.spec.tolerations ?? []), ...ADDED] },
  };
}
