// SPDX-License-Identifier: Apache-2.0
// Clusters for tests, written as the Kubernetes objects they would come from. A test says only what matters
// to it; everything else has room to spare.

import type { Labels } from '../../model/labels.ts';
import type { Node, NodeSource } from '../../model/node.ts';
import { nodeFromKubernetes } from '../../model/node.ts';
import type { Parsed } from '../../model/parsed.ts';
import type { Pod } from '../../model/pod.ts';
import { podFromKubernetes } from '../../model/pod-from-kubernetes.ts';
import type {
  PodSource,
  PodSpecSource,
  PodStatusSource,
  QuantityMap,
} from '../../model/pod-source.ts';
import type { TaintSource } from '../../model/taints.ts';
import { type KubernetesObjects, snapshotFromKubernetes } from '../from-kubernetes.ts';
import type { Snapshot } from '../snapshot.ts';

export const HOSTNAME = 'kubernetes.io/hostname';
export const ZONE = 'topology.kubernetes.io/zone';

export function value<T>(parsed: Parsed<T>): T {
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

export interface NodeWish {
  readonly name?: string;
  readonly zone?: string;
  readonly labels?: Labels;
  readonly taints?: readonly TaintSource[];
  readonly unschedulable?: boolean;
  readonly allocatable?: QuantityMap;
}

export function nodeSource(wish: NodeWish = {}): NodeSource {
  const name = wish.name ?? 'node-1';
  return {
    metadata: {
      name,
      labels: { [HOSTNAME]: name, ...(wish.zone && { [ZONE]: wish.zone }), ...wish.labels },
    },
    spec: { unschedulable: wish.unschedulable ?? false, taints: wish.taints ?? [] },
    status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110', ...wish.allocatable } },
  };
}

export function aNode(wish: NodeWish = {}): Node {
  return value(nodeFromKubernetes(nodeSource(wish)));
}

export interface PodWish {
  readonly name?: string;
  readonly namespace?: string;
  readonly labels?: Labels;
  readonly on?: string;
  readonly cpu?: string;
  readonly memory?: string;
  readonly priority?: number;
  readonly terminating?: boolean;
  readonly controller?: string;
  readonly spec?: PodSpecSource;
  readonly status?: PodStatusSource;
}

function podMetadata(wish: PodWish): PodSource['metadata'] {
  const name = wish.name ?? 'pod';
  const namespace = wish.namespace ?? 'default';
  return {
    name,
    namespace,
    uid: `uid-${namespace}-${name}`,
    labels: wish.labels ?? {},
    ...(wish.terminating === true && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    ...(wish.controller !== undefined && {
      ownerReferences: [{ kind: wish.controller, name: 'owner', uid: 'o', controller: true }],
    }),
  };
}

export function podSource(wish: PodWish = {}): PodSource {
  const requests = {
    ...(wish.cpu !== undefined && { cpu: wish.cpu }),
    ...(wish.memory !== undefined && { memory: wish.memory }),
  };
  return {
    metadata: podMetadata(wish),
    spec: {
      containers: [{ name: 'main', resources: { requests } }],
      priority: wish.priority ?? 0,
      ...(wish.on !== undefined && { nodeName: wish.on }),
      ...wish.spec,
    },
    ...(wish.status && { status: wish.status }),
  };
}

export function aPod(wish: PodWish = {}): Pod {
  return value(podFromKubernetes(podSource(wish)));
}

export interface ClusterWish extends Omit<KubernetesObjects, 'nodes' | 'pods'> {
  readonly nodes?: readonly NodeWish[];
  readonly pods?: readonly PodWish[];
}

export function aCluster({ nodes, pods, ...rest }: ClusterWish = {}): Snapshot {
  return value(
    snapshotFromKubernetes({
      ...rest,
      nodes: (nodes ?? [{}]).map(nodeSource),
      pods: (pods ?? []).map(podSource),
    }),
  );
}

/** `app: x` and so on, as a selector. */
export function select(labels: Labels): { readonly matchLabels: Labels } {
  return { matchLabels: labels };
}
