// SPDX-License-Identifier: Apache-2.0
// A Pod, reduced to what the scheduler reads (requests, tolerations, affinity, volumes) and what decides whether it may
// be evicted.

import type { HostPort } from './host-port.ts';
import type { Labels } from './labels.ts';
import type { NodeSelector, NodeSelectorTerm } from './node-selector.ts';
import type { PodAffinityTerm } from './pod-affinity.ts';
import type { PodVolume } from './pod-volume.ts';
import type { Resources } from './resources.ts';
import type { Toleration } from './taints.ts';
import type { SpreadConstraint } from './topology-spread.ts';

export interface Controller {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

export interface PreferredNodes {
  readonly weight: number;
  readonly term: NodeSelectorTerm;
}

/** What speaks against evicting a pod, beside its controller and its disruption budgets. */
export interface EvictionHints {
  /** Annotation `cluster-autoscaler.kubernetes.io/safe-to-evict`; absent: not set. */
  readonly safeToEvict?: boolean;
  /** Annotation `karpenter.sh/do-not-disrupt: "true"`. */
  readonly doNotDisrupt?: true;
  /** Names of volumes on the node's disk that no annotation calls safe to lose. */
  readonly localVolumes?: readonly string[];
}

export interface Pod {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly labels: Labels;
  readonly controller?: Controller;
  /** The mirror pod of a static pod: it exists as long as its node. */
  readonly isMirror: boolean;
  /** Wall clock; 0 if it is unknown. */
  readonly createdAt: number;
  /** Absent: none, as of most pods. */
  readonly eviction?: EvictionHints;

  /** The node it runs on, or the only node it may run on. Empty: not decided. */
  readonly nodeName: string;
  /** The node on which the scheduler is preempting pods for it. Empty: none. */
  readonly nominatedNodeName: string;
  /** Succeeded or failed: occupies nothing any more. */
  readonly isFinished: boolean;
  readonly isTerminating: boolean;
  /** Held back by scheduling gates: not schedulable yet. */
  readonly isGated: boolean;
  readonly priority: number;

  /** What a node must have free to run it, including one pod. */
  readonly requests: Resources;
  /** What it occupies on its node. Differs from `requests` during an in-place resize. */
  readonly held: Resources;

  readonly tolerations: readonly Toleration[];
  readonly nodeSelector: Labels;
  /** Absent: any node. */
  readonly nodeAffinity?: NodeSelector;
  readonly preferredNodes: readonly PreferredNodes[];
  readonly affinity: readonly PodAffinityTerm[];
  readonly antiAffinity: readonly PodAffinityTerm[];
  /** Only hard constraints, which can prevent scheduling. */
  readonly spread: readonly SpreadConstraint[];
  /** Constraints that only influence scoring. Absent: none, as of most pods. */
  readonly softSpread?: readonly SpreadConstraint[];
  readonly hostPorts: readonly HostPort[];
  readonly volumes: readonly PodVolume[];
  /** Features that its node must declare. */
  readonly requiredFeatures: readonly string[];
  /** Claims for devices (dynamic resource allocation), by their name in the pod. */
  readonly resourceClaims: readonly string[];
}

export function podKey(pod: { readonly namespace: string; readonly name: string }): string {
  return `${pod.namespace}/${pod.name}`;
}

/** Whether the pods are equal in every field. Cheap for pods whose equal fields are the same objects. */
export function isSamePod(one: Pod, other: Pod): boolean {
  if (one === other) return true;
  const fields = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...fields].every((field) => {
    const left: unknown = Reflect.get(one, field);
    const right: unknown = Reflect.get(other, field);
    return left === right || JSON.stringify(left) === JSON.stringify(right);
  });
}

/** A pod of a DaemonSet. It does not need another node when its node is removed. */
export function isDaemonSetPod(pod: Pod): boolean {
  return pod.controller?.kind === 'DaemonSet';
}

/**
 * The order in which the pods of a node are evicted, and so scheduled again: the largest first, by their share of its CPU or
 * memory, so that the others fill the gaps.
 */
export function sortForEviction<T>(
  items: readonly T[],
  { cpuMilli, memoryBytes }: Pick<Resources, 'cpuMilli' | 'memoryBytes'>,
  podOf: (item: T) => Pod,
): readonly T[] {
  const share = ({ requests }: Pod): number =>
    Math.max(
      requests.cpuMilli / Math.max(1, cpuMilli),
      requests.memoryBytes / Math.max(1, memoryBytes),
    );
  return items
    .map((item) => ({ item, share: share(podOf(item)) }))
    .toSorted((a, b) => b.share - a.share)
    .map(({ item }) => item);
}
