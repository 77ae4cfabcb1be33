// SPDX-License-Identifier: Apache-2.0
// A pod as a scheduler sees it: what it asks for, what it bears, whom it wants near and whom it does not.

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

export interface Pod {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly labels: Labels;
  readonly controller?: Controller;
  /** A copy of a static pod: it lives and dies with its node. */
  readonly isMirror: boolean;

  /** Where it runs, or the only place where it may; empty: not decided. */
  readonly nodeName: string;
  /** Where the scheduler makes room for it; empty: nowhere. */
  readonly nominatedNodeName: string;
  /** Succeeded or failed: holds nothing any more. */
  readonly isFinished: boolean;
  readonly isTerminating: boolean;
  /** Held back by scheduling gates: nobody schedules it yet. */
  readonly isGated: boolean;
  readonly priority: number;

  /** What it needs to be placed, itself included as one pod. */
  readonly requests: Resources;
  /** What it holds where it runs: differs from `requests` while a resize in place is going on. */
  readonly held: Resources;

  readonly tolerations: readonly Toleration[];
  readonly nodeSelector: Labels;
  /** Absent: any node. */
  readonly nodeAffinity?: NodeSelector;
  readonly preferredNodes: readonly PreferredNodes[];
  readonly affinity: readonly PodAffinityTerm[];
  readonly antiAffinity: readonly PodAffinityTerm[];
  /** Only those that may keep it from being scheduled. */
  readonly spread: readonly SpreadConstraint[];
  readonly hostPorts: readonly HostPort[];
  readonly volumes: readonly PodVolume[];
}

export function podKey(pod: { readonly namespace: string; readonly name: string }): string {
  return `${pod.namespace}/${pod.name}`;
}

/** One that its DaemonSet puts on every node it may: it needs no other place when its node goes. */
export function isDaemonPod(pod: Pod): boolean {
  return pod.controller?.kind === 'DaemonSet';
}
