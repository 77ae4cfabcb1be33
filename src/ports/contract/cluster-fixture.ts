// SPDX-License-Identifier: Apache-2.0
import { expect } from 'vitest';
import type { ClaimRef, Cluster, ClusterNode, ClusterView, NodeRef, PodRef } from '../cluster.ts';

export interface NewNode {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: ClusterNode['taints'];
  readonly providerId?: string;
  readonly systemUuid?: string;
  readonly ready?: boolean;
}

export interface StoredToken {
  readonly token: string;
  readonly expiresAt: number;
  readonly groups: readonly string[];
  readonly usages: readonly string[];
  readonly description: string;
}

/** A cluster under test, with functions that act as kubelets, controllers and users. */
export interface ClusterFixture {
  readonly cluster: Cluster;
  /** Opens the same cluster as another process. */
  readonly peer: () => Promise<Cluster>;
  /** Advances the clock of all processes. */
  readonly advance: (ms: number) => Promise<void>;
  /** Advances the clock until the promise settles. */
  readonly advanceUntil: <T>(work: Promise<T>) => Promise<T>;
  readonly now: () => number;
  /** Closes every connection to the API server and refuses new ones. */
  readonly disconnect: () => void;
  readonly reconnect: () => void;
  readonly addNode: (node: NewNode) => Promise<NodeRef>;
  /** Changes a label as another field manager; `null` removes it. */
  readonly labelNode: (
    name: string,
    label: readonly [key: string, value: string | null],
  ) => Promise<void>;
  readonly removeNode: (name: string) => Promise<void>;
  /** Adds a running pod on the named node. */
  readonly addPod: (name: string, nodeName: string) => Promise<PodRef>;
  /** Creates a PodDisruptionBudget that blocks the eviction of the pod. */
  readonly protectPod: (pod: PodRef) => Promise<void>;
  /** Creates a namespace with these labels. */
  readonly addNamespace: (name: string, labels: Readonly<Record<string, string>>) => Promise<void>;
  /** Attaches a volume to the node, and returns its name; `claim` is a new claim that the volume is bound to. */
  readonly attachVolume: (nodeName: string, claim: ClaimRef) => Promise<string>;
  /** Deletes the Lease while it is held, as a user could. */
  readonly removeLease: (name: string) => Promise<void>;
  readonly tokens: () => Promise<readonly StoredToken[]>;
  /** `type reason message` of every Event about the node. */
  readonly events: (nodeName: string) => Promise<readonly string[]>;
  readonly cleanup: () => Promise<void>;
}

/** Opens a new, empty cluster. */
export type OpenCluster = () => Promise<ClusterFixture>;

/** Runs a test on its own cluster and cleans up afterwards. */
export function withCluster(open: OpenCluster, test: (fixture: ClusterFixture) => Promise<void>) {
  return async (): Promise<void> => {
    const fixture = await open();
    try {
      await test(fixture);
    } finally {
      await fixture.cleanup();
    }
  };
}

/** Waits for a view that satisfies the condition; the test's timeout is the limit. */
export async function waitForView(
  cluster: Cluster,
  satisfies: (view: ClusterView) => boolean,
): Promise<ClusterView> {
  for (;;) {
    const view = await cluster.view().catch(() => undefined);
    if (view !== undefined && satisfies(view)) return view;
    await cluster.waitForChange({ afterRevision: view?.revision ?? 0 });
  }
}

export async function waitForNode(
  cluster: Cluster,
  name: string,
  satisfies: (node: ClusterNode) => boolean = () => true,
): Promise<ClusterNode> {
  const matches = (node: ClusterNode) => node.name === name && satisfies(node);
  const view = await waitForView(cluster, ({ nodes }) => nodes.some(matches));
  return view.nodes.find(matches) ?? expect.unreachable('the node disappeared from the view');
}
