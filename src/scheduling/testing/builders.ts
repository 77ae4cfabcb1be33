// SPDX-License-Identifier: Apache-2.0
// Clusters for tests, built from Kubernetes objects. A test sets only what matters to it; everything else has
// ample capacity.

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

export function unwrap<T>(parsed: Parsed<T>): T {
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

export interface NodeOptions {
  readonly name?: string;
  readonly zone?: string;
  /** Whether it has the label with its name. Absent: true. */
  readonly hasHostname?: boolean;
  readonly labels?: Labels;
  readonly taints?: readonly TaintSource[];
  readonly unschedulable?: boolean;
  readonly allocatable?: QuantityMap;
  readonly declaredFeatures?: readonly string[];
}

export function nodeSource(options: NodeOptions = {}): NodeSource {
  const name = options.name ?? 'node-1';
  return {
    metadata: {
      name,
      labels: {
        ...(options.hasHostname !== false && { [HOSTNAME]: name }),
        ...(options.zone && { [ZONE]: options.zone }),
        ...options.labels,
      },
    },
    spec: { unschedulable: options.unschedulable ?? false, taints: options.taints ?? [] },
    status: {
      allocatable: { cpu: '4', memory: '8Gi', pods: '110', ...options.allocatable },
      declaredFeatures: options.declaredFeatures ?? [],
    },
  };
}

export function aNode(options: NodeOptions = {}): Node {
  return unwrap(nodeFromKubernetes(nodeSource(options)));
}

export interface PodOptions {
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

function podMetadata(options: PodOptions): PodSource['metadata'] {
  const name = options.name ?? 'pod';
  const namespace = options.namespace ?? 'default';
  return {
    name,
    namespace,
    uid: `uid-${namespace}-${name}`,
    labels: options.labels ?? {},
    ...(options.terminating === true && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    ...(options.controller !== undefined && {
      ownerReferences: [{ kind: options.controller, name: 'owner', uid: 'o', controller: true }],
    }),
  };
}

export function podSource(options: PodOptions = {}): PodSource {
  const requests = {
    ...(options.cpu !== undefined && { cpu: options.cpu }),
    ...(options.memory !== undefined && { memory: options.memory }),
  };
  return {
    metadata: podMetadata(options),
    spec: {
      containers: [{ name: 'main', resources: { requests } }],
      priority: options.priority ?? 0,
      ...(options.on !== undefined && { nodeName: options.on }),
      ...options.spec,
    },
    ...(options.status && { status: options.status }),
  };
}

export function aPod(options: PodOptions = {}): Pod {
  return unwrap(podFromKubernetes(podSource(options)));
}

export interface ClusterOptions extends Omit<KubernetesObjects, 'nodes' | 'pods'> {
  readonly nodes?: readonly NodeOptions[];
  readonly pods?: readonly PodOptions[];
}

export function aCluster({ nodes, pods, ...rest }: ClusterOptions = {}): Snapshot {
  return unwrap(
    snapshotFromKubernetes({
      ...rest,
      nodes: (nodes ?? [{}]).map(nodeSource),
      pods: (pods ?? []).map(podSource),
    }),
  );
}

/** A label selector for these labels. */
export function select(labels: Labels): { readonly matchLabels: Labels } {
  return { matchLabels: labels };
}
