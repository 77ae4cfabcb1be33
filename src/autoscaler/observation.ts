// SPDX-License-Identifier: Apache-2.0
// The cluster as the autoscaler sees it: one snapshot that follows the changes of the watch cache.

import type { DisruptionBudget } from '../model/disruption-budget.ts';
import type { Node } from '../model/node.ts';
import { type Pod, podKey } from '../model/pod.ts';
import { NO_RESOURCES, parseResources } from '../model/resources.ts';
import type { Clock } from '../ports/clock.ts';
import type { WorkloadObjects } from '../ports/cluster.ts';
import {
  type Cluster,
  type ClusterChanges,
  type ClusterNode,
  type ClusterView,
  isViewFresh,
} from '../ports/cluster.ts';
import { PvescalerError } from '../ports/errors.ts';
import { type Snapshot, SnapshotCache } from '../scheduling/index.ts';

export interface Observed {
  /** Valid until the next update. */
  readonly snapshot: Snapshot;
  /** Pods that wait for a node. */
  readonly pending: readonly Pod[];
  readonly disruptionBudgets: readonly DisruptionBudget[];
  /** By name. */
  readonly nodes: ReadonlyMap<string, ClusterNode>;
  readonly revision: number;
}

export type Observation =
  | { readonly isFresh: true; readonly observed: Observed }
  /** Nothing may be decided. */
  | { readonly isFresh: false; readonly reason: string };

export class ClusterObserver {
  readonly #cluster: Cluster;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #cache = new SnapshotCache();
  #nodes = new Map<string, ClusterNode>();
  #disruptionBudgets: readonly DisruptionBudget[] = [];
  /** Undefined before the first update. */
  #revision: number | undefined;

  constructor({
    cluster,
    clock,
  }: { readonly cluster: Cluster; readonly clock: Pick<Clock, 'now'> }) {
    this.#cluster = cluster;
    this.#clock = clock;
  }

  get revision(): number {
    return this.#revision ?? 0;
  }

  /** Follows the cluster, also while its view is stale, so that the first fresh one costs little. */
  async update(): Promise<Observation> {
    let freshAt: number;
    try {
      freshAt = await this.#follow();
    } catch (error) {
      if (!(error instanceof PvescalerError) || error.code === 'CANCELLED') throw error;
      const { lastError } = error.facts;
      return {
        isFresh: false,
        reason: lastError === undefined ? error.message : String(lastError),
      };
    }
    if (!isViewFresh({ freshAt }, this.#clock.now()))
      return { isFresh: false, reason: 'its last update is too old' };
    return {
      isFresh: true,
      observed: {
        snapshot: this.#cache.snapshot,
        pending: this.#cache.pending,
        disruptionBudgets: this.#disruptionBudgets,
        nodes: this.#nodes,
        revision: this.revision,
      },
    };
  }

  /** Returns the wall clock at which the view was last proved current. */
  async #follow(): Promise<number> {
    const changes =
      this.#revision === undefined ? undefined : await this.#cluster.changesSince(this.#revision);
    if (changes !== undefined) {
      this.#apply(changes);
      return changes.freshAt;
    }
    const view = await this.#cluster.view();
    this.#replace(view);
    return view.freshAt;
  }

  #apply({ nodes, pods, workloads, revision }: ClusterChanges): void {
    for (const [name, node] of nodes) {
      if (node === undefined) this.#nodes.delete(name);
      else this.#nodes.set(name, node);
    }
    const isUnchanged = nodes.size === 0 && pods.size === 0 && workloads === undefined;
    this.#revision = revision;
    if (isUnchanged) return;
    this.#cache.update({
      nodes: new Map(Array.from(nodes, ([name, node]) => [name, node && schedulerNode(node)])),
      pods,
      ...this.#applyWorkloads(workloads),
    });
  }

  #replace({ nodes, pods, workloads, revision }: ClusterView): void {
    this.#nodes = new Map(nodes.map((node) => [node.name, node]));
    this.#revision = revision;
    this.#cache.replace({
      nodes: new Map(nodes.map((node) => [node.name, schedulerNode(node)])),
      pods: new Map(pods.map((pod) => [podKey(pod), pod])),
      ...this.#applyWorkloads(workloads),
    });
  }

  #applyWorkloads(
    workloads: WorkloadObjects | undefined,
  ): Pick<WorkloadObjects, 'daemonSets' | 'namespaces' | 'storage'> | undefined {
    if (workloads === undefined) return undefined;
    const { disruptionBudgets, ...rest } = workloads;
    this.#disruptionBudgets = disruptionBudgets;
    return rest;
  }
}

/** The controller manager adds them to a Node that is not Ready. */
const READINESS_TAINTS = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
]);

/**
 * What the scheduler reads of a Node, or soon will: the controller manager removes its taints from a Ready Node. While it is late
 * or down, a new machine would get them, too, so that it would help no pod.
 */
export function schedulerNode(node: ClusterNode): Node {
  const { name, labels, ready, unschedulable, declaredFeatures } = node;
  const taints = node.taints.filter(({ key }) => !ready || !READINESS_TAINTS.has(key));
  // The API server accepts valid quantities only; without any, no pod fits.
  const allocatable = parseResources(node.allocatable);
  return {
    name,
    labels,
    taints,
    isUnschedulable: unschedulable,
    allocatable: allocatable.ok ? allocatable.value : NO_RESOURCES,
    declaredFeatures,
  };
}
