// SPDX-License-Identifier: Apache-2.0
import { expect } from 'vitest';
import type { Cluster, ClusterNode, ClusterView, NodeRef, PodRef } from '../cluster.ts';

export interface NodeToAdd {
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

/** A cluster with the hands of others on it: kubelets, controllers, people. */
export interface ClusterBench {
  readonly cluster: Cluster;
  /** The same cluster as another process sees it. */
  readonly peer: () => Promise<Cluster>;
  /** Time on the clock of all these processes. */
  readonly pass: (ms: number) => Promise<void>;
  /** Lets time pass until the work is done. */
  readonly settled: <T>(work: Promise<T>) => Promise<T>;
  readonly now: () => number;
  /** Cuts every connection to the API server and lets none be made. */
  readonly cutOff: () => void;
  readonly reconnect: () => void;
  readonly addNode: (node: NodeToAdd) => Promise<NodeRef>;
  /** As somebody else would who changes a label; `null` takes it away. */
  readonly labelNode: (
    name: string,
    label: readonly [key: string, value: string | null],
  ) => Promise<void>;
  readonly removeNode: (name: string) => Promise<void>;
  /** On a node of that name, running. */
  readonly addPod: (name: string, nodeName: string) => Promise<PodRef>;
  /** A budget that lets no such pod go. */
  readonly protectPod: (pod: PodRef) => Promise<void>;
  /** As a person would who removes the Lease of that name from under its holder. */
  readonly removeLease: (name: string) => Promise<void>;
  readonly tokens: () => Promise<readonly StoredToken[]>;
  /** `type reason message` of every Event about that node. */
  readonly events: (nodeName: string) => Promise<readonly string[]>;
  readonly cleanup: () => Promise<void>;
}

/** A new, empty cluster each time. */
export type OpenCluster = () => Promise<ClusterBench>;

/** Runs a test on a cluster of its own and cleans up after it, however it ends. */
export function onCluster(open: OpenCluster, test: (bench: ClusterBench) => Promise<void>) {
  return async (): Promise<void> => {
    const bench = await open();
    try {
      await test(bench);
    } finally {
      await bench.cleanup();
    }
  };
}

/** Waits for a view that satisfies; the test's own time limit ends one that never does. */
export async function seen(
  cluster: Cluster,
  satisfies: (view: ClusterView) => boolean,
): Promise<ClusterView> {
  for (;;) {
    const view = await cluster.view().catch(() => undefined);
    if (view !== undefined && satisfies(view)) return view;
    await cluster.changed({ after: view?.revision ?? 0 });
  }
}

export async function seenNode(
  cluster: Cluster,
  name: string,
  satisfies: (node: ClusterNode) => boolean = () => true,
): Promise<ClusterNode> {
  const matches = (node: ClusterNode) => node.name === name && satisfies(node);
  const view = await seen(cluster, ({ nodes }) => nodes.some(matches));
  return view.nodes.find(matches) ?? expect.unreachable('it was just there');
}
