// SPDX-License-Identifier: Apache-2.0
// A DaemonSet runs one pod on every node that its selectors, affinity and tolerations allow.

import type { Labels } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import type { Pod } from './pod.ts';
import { withPodDefaults } from './pod-defaults.ts';
import { podFromKubernetes } from './pod-from-kubernetes.ts';
import type { PodSource, PodSpecSource } from './pod-source.ts';
import type { Toleration } from './taints.ts';

export interface DaemonSet {
  readonly name: string;
  readonly namespace: string;
  /** The pod it runs on a node, including the tolerations that the DaemonSet controller adds. */
  readonly pod: Pod;
}

/** A DaemonSet object of the Kubernetes API. */
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

// Daemon pods stay on an unhealthy node, since they may be needed to repair it.
const ALWAYS_TOLERATED: readonly Toleration[] = [
  existsToleration('node.kubernetes.io/not-ready', 'NoExecute'),
  existsToleration('node.kubernetes.io/unreachable', 'NoExecute'),
  existsToleration('node.kubernetes.io/disk-pressure', 'NoSchedule'),
  existsToleration('node.kubernetes.io/memory-pressure', 'NoSchedule'),
  existsToleration('node.kubernetes.io/pid-pressure', 'NoSchedule'),
  existsToleration('node.kubernetes.io/unschedulable', 'NoSchedule'),
];
const HOST_NETWORK_TOLERATED = existsToleration(
  'node.kubernetes.io/network-unavailable',
  'NoSchedule',
);

function existsToleration(key: string, effect: 'NoSchedule' | 'NoExecute'): Toleration {
  return { key, operator: 'Exists', value: '', effect };
}

export function daemonSetFromKubernetes(source: DaemonSetSource): Parsed<DaemonSet> {
  const { name } = source.metadata;
  const pod = podFromKubernetes(podSourceOf(source));
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

function podSourceOf(source: DaemonSetSource): PodSource {
  const { name, namespace, uid } = source.metadata;
  const template = source.spec?.template;
  return {
    metadata: {
      name,
      namespace: namespace ?? 'default',
      labels: template?.metadata?.labels ?? {},
      ownerReferences: [{ kind: 'DaemonSet', name, uid: uid ?? '', controller: true }],
    },
    spec: withPodDefaults(template?.spec ?? {}),
  };
}
