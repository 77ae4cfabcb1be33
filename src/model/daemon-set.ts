// SPDX-License-Identifier: Apache-2.0
// A DaemonSet: a pod for every node that its own selectors, affinity and tolerations allow.

import type { Labels } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import type { Pod } from './pod.ts';
import { podFromKubernetes } from './pod-from-kubernetes.ts';
import type { PodSource, PodSpecSource } from './pod-source.ts';
import type { Toleration } from './taints.ts';

export interface DaemonSet {
  readonly name: string;
  readonly namespace: string;
  /** What it would run on a node, with the tolerations that its controller adds. */
  readonly pod: Pod;
}

/** A DaemonSet as it comes from the Kubernetes API. */
export interface DaemonSetSource {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string | null;
    readonly uid?: string | null;
  };
  readonly spec?: {
    readonly template?: {
      readonly metadata?: { readonly labels?: Labels | null } | null;
      readonly spec?: PodSpecSource | null;
    } | null;
  } | null;
}

// A node in trouble keeps its daemons: they may be what repairs it.
const ALWAYS_TOLERATED: readonly Toleration[] = [
  exists('node.kubernetes.io/not-ready', 'NoExecute'),
  exists('node.kubernetes.io/unreachable', 'NoExecute'),
  exists('node.kubernetes.io/disk-pressure', 'NoSchedule'),
  exists('node.kubernetes.io/memory-pressure', 'NoSchedule'),
  exists('node.kubernetes.io/pid-pressure', 'NoSchedule'),
  exists('node.kubernetes.io/unschedulable', 'NoSchedule'),
];
const HOST_NETWORK_TOLERATED = exists('node.kubernetes.io/network-unavailable', 'NoSchedule');

function exists(key: string, effect: 'NoSchedule' | 'NoExecute'): Toleration {
  return { key, operator: 'Exists', value: '', effect };
}

export function daemonSetFromKubernetes(source: DaemonSetSource): Parsed<DaemonSet> {
  const { name } = source.metadata;
  const pod = podFromKubernetes(podOf(source));
  if (!pod.ok) return refused(`DaemonSet '${name}': ${pod.problem}`);
  const isOnHostNetwork = source.spec?.template?.spec?.hostNetwork === true;
  const tolerations = [
    ...pod.value.tolerations,
    ...ALWAYS_TOLERATED,
    ...(isOnHostNetwork ? [HOST_NETWORK_TOLERATED] : []),
  ];
  return accepted({
    name,
    namespace: pod.value.namespace,
    pod: { ...pod.value, tolerations },
  });
}

function podOf(source: DaemonSetSource): PodSource {
  const { name, namespace, uid } = source.metadata;
  const template = source.spec?.template;
  return {
    metadata: {
      name,
      namespace: namespace ?? 'default',
      labels: template?.metadata?.labels ?? {},
      ownerReferences: [{ kind: 'DaemonSet', name, uid: uid ?? '', controller: true }],
    },
    spec: template?.spec ?? {},
  };
}
