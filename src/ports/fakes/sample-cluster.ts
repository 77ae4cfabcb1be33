// SPDX-License-Identifier: Apache-2.0
// Nodes and pods for tests, which override only the fields that matter to them.
import type { Pod } from '../../model/pod.ts';
import { NO_RESOURCES } from '../../model/resources.ts';
import type { ClusterNode } from '../cluster.ts';

const MEDIUM = { cpu: '2', memory: '4Gi', pods: '110' };

/** A ready, empty node without a pool. */
export function aClusterNode(overrides: Partial<ClusterNode> = {}): ClusterNode {
  const name = overrides.name ?? 'worker-1';
  return {
    name,
    uid: `uid-of-${name}`,
    providerId: '',
    systemUuid: '',
    ready: true,
    readyChangedAt: Date.UTC(2026, 0, 1),
    notReadyReason: '',
    unschedulable: false,
    isTerminating: false,
    createdAt: Date.UTC(2026, 0, 1),
    labels: { 'kubernetes.io/hostname': name },
    annotations: {},
    declared: { labels: [], annotations: [] },
    taints: [],
    addresses: [],
    capacity: MEDIUM,
    allocatable: MEDIUM,
    declaredFeatures: [],
    ...overrides,
  };
}

/** A pending pod without requests. */
export function aClusterPod(overrides: Partial<Pod> = {}): Pod {
  const name = overrides.name ?? 'web-1';
  return {
    name,
    namespace: 'default',
    uid: `uid-of-${name}`,
    labels: {},
    isMirror: false,
    createdAt: 0,
    nodeName: '',
    nominatedNodeName: '',
    isFinished: false,
    isTerminating: false,
    isGated: false,
    priority: 0,
    requests: { ...NO_RESOURCES, pods: 1 },
    held: { ...NO_RESOURCES, pods: 1 },
    tolerations: [],
    nodeSelector: {},
    preferredNodes: [],
    affinity: [],
    antiAffinity: [],
    spread: [],
    hostPorts: [],
    volumes: [],
    requiredFeatures: [],
    resourceClaims: [],
    ...overrides,
  };
}
