// SPDX-License-Identifier: Apache-2.0
// The nodes that can take pods of other nodes, sorted by free space. Built once per cluster and updated with
// every change, so that a simulated drain costs as much as the pods that it moves, not as much as the cluster.

import type { Pod } from '../model/pod.ts';
import { preferredByDefaultScores } from './default-scores.ts';
import { isPermanentlyRejected, isReversiblyRejected, passesNodeRules } from './filters/all.ts';
import { hasCapacity } from './filters/node-resources.ts';
import { runAllFiltersWith } from './filters/nominated.ts';
import { newPlacedPodOn } from './filters/volume-binding.ts';
import { type Bin, Bins, newBin } from './pack/bins.ts';
import type { ClusterState } from './state/cluster-state.ts';
import type { NodeInfo } from './state/node-info.ts';
import { newPendingPod, nodeRulesKey } from './state/pending-pod.ts';
import type { MovingPod, PlacedPod } from './state/placed-pod.ts';
import { CPU, MEMORY } from './state/resource-names.ts';

/** Returns an index below the number of nodes with the highest score. */
export type ChooseTied = (count: number) => number;

export interface TargetOptions {
  /** Nodes that must not get pods. */
  readonly avoid: ReadonlySet<string>;
  /** Nominated pods by node. They keep their space, whatever their priority. */
  readonly nominated: ReadonlyMap<string, readonly Pod[]>;
  /** Of nodes that kube-scheduler prefers equally. Absent: the first. */
  readonly chooseTied?: ChooseTied | undefined;
}

/** So many nodes with the most free space are scored. In a large cluster kube-scheduler looks at a part, too. */
const MAX_SCORED = 100;

export class DrainTargets {
  static readonly #known = new WeakMap<ClusterState, DrainTargets>();
  readonly #cluster: ClusterState;
  readonly #changed: Set<NodeInfo>;
  readonly #closed = new Set<NodeInfo>();
  #generation: number;
  #bins: Bins;
  #binOf = new Map<NodeInfo, Bin>();
  readonly #nodeRules = new Map<string, number>();
  /** By number of node rules. */
  readonly #ruleResults: WeakMap<NodeInfo, boolean>[] = [];

  private constructor(cluster: ClusterState) {
    this.#cluster = cluster;
    this.#changed = cluster.trackChangedNodes();
    this.#generation = cluster.generation;
    this.#bins = new Bins(capacityWeights(cluster));
  }

  static of(cluster: ClusterState): DrainTargets {
    const known = this.#known.get(cluster) ?? new DrainTargets(cluster);
    this.#known.set(cluster, known);
    if (known.#generation !== cluster.generation) known.#restart();
    return known;
  }

  /** Sorts all nodes again, so that results do not depend on the history of the cluster. */
  #restart(): void {
    this.#generation = this.#cluster.generation;
    this.#bins = new Bins(capacityWeights(this.#cluster));
    this.#binOf = new Map();
    this.#changed.clear();
    for (const nodeInfo of this.#cluster.nodeInfos)
      if (nodeInfo.isPresent) this.#changed.add(nodeInfo);
  }

  /** Offers the node no more, although it is present. */
  close(nodeInfo: NodeInfo): void {
    this.#closed.add(nodeInfo);
    this.#changed.add(nodeInfo);
  }

  open(nodeInfo: NodeInfo): void {
    this.#closed.delete(nodeInfo);
    this.#changed.add(nodeInfo);
  }

  /** Computed once, because nodes are drained in every decision. */
  movingPod(placedPod: PlacedPod): MovingPod {
    placedPod.moving ??= this.newMovingPod(placedPod.pod);
    return placedPod.moving;
  }

  newMovingPod(pod: Pod): MovingPod {
    const pending = { ...pod, nodeName: '', nominatedNodeName: '', isTerminating: false };
    const { cpuMilli, memoryBytes } = pod.requests;
    return {
      pendingPod: newPendingPod(pending, this.#cluster),
      nodeRules: this.#numberOf(pending),
      cpuMilli,
      memoryBytes,
      placedPod: undefined,
      spreadScores: undefined,
    };
  }

  #numberOf(pod: Pod): number {
    const key = JSON.stringify([
      nodeRulesKey(pod),
      pod.tolerations,
      pod.requiredFeatures,
      pod.resourceClaims,
    ]);
    const number = this.#nodeRules.get(key) ?? this.#nodeRules.size;
    this.#nodeRules.set(key, number);
    return number;
  }

  /** The pod as placed on the node. The counters of a pod without volumes are looked up once. */
  placedPod(moving: MovingPod, nodeInfo: NodeInfo): PlacedPod {
    const { pod } = moving.pendingPod;
    if (pod.volumes.length > 0) return { ...newPlacedPodOn(nodeInfo, pod, this.#cluster), moving };
    moving.placedPod ??= { ...this.#cluster.newPlacedPod(pod, pod.requests), moving };
    return moving.placedPod;
  }

  /** A node that accepts the pod and has little space left over. */
  tightest(moving: MovingPod, options: TargetOptions): NodeInfo | undefined {
    this.#update();
    return this.#bins.tightest(moving, ({ nodeInfo }) => this.accepts(moving, nodeInfo, options))
      ?.nodeInfo;
  }

  /** The accepting node that kube-scheduler prefers with its default profile. */
  preferred(moving: MovingPod, options: TargetOptions): NodeInfo | undefined {
    this.#update();
    const accepting = this.#emptiest(moving, options);
    const nodes = preferredByDefaultScores(moving, accepting, this.#cluster);
    return nodes[nodes.length < 2 ? 0 : (options.chooseTied?.(nodes.length) ?? 0)];
  }

  #emptiest(moving: MovingPod, options: TargetOptions): readonly NodeInfo[] {
    const found: NodeInfo[] = [];
    for (const { nodeInfo } of this.#bins.allFromEmptiest()) {
      if (found.length >= MAX_SCORED) break;
      if (this.accepts(moving, nodeInfo, options)) found.push(nodeInfo);
    }
    return found;
  }

  /** Up to `limit` nodes that do not permanently reject the pod. Placing other pods makes them fewer. */
  candidates(moving: MovingPod, limit: number, options: TargetOptions): readonly NodeInfo[] {
    this.#update();
    return this.#bins
      .collect(moving, limit, ({ nodeInfo }) => this.#isCandidate(moving, nodeInfo, options))
      .map(({ nodeInfo }) => nodeInfo);
  }

  accepts(moving: MovingPod, nodeInfo: NodeInfo, options: TargetOptions): boolean {
    if (!this.#isCandidate(moving, nodeInfo, options)) return false;
    if (isReversiblyRejected(moving.pendingPod, nodeInfo, this.#cluster)) return false;
    const rivals = options.nominated.get(nodeInfo.node.name);
    if (rivals === undefined) return true;
    const check = { pendingPod: moving.pendingPod, nodeInfo, cluster: this.#cluster };
    return runAllFiltersWith(rivals, check).length === 0;
  }

  #isCandidate(moving: MovingPod, nodeInfo: NodeInfo, { avoid }: TargetOptions): boolean {
    const { pendingPod } = moving;
    return (
      hasCapacity(pendingPod, nodeInfo) &&
      this.#passesNodeRules(moving, nodeInfo) &&
      !avoid.has(nodeInfo.node.name) &&
      !isPermanentlyRejected(pendingPod, nodeInfo, this.#cluster)
    );
  }

  #passesNodeRules({ pendingPod, nodeRules }: MovingPod, nodeInfo: NodeInfo): boolean {
    const results = this.#ruleResults[nodeRules] ?? new WeakMap<NodeInfo, boolean>();
    this.#ruleResults[nodeRules] = results;
    const known = results.get(nodeInfo);
    if (known !== undefined) return known;
    const passes = passesNodeRules(pendingPod, nodeInfo, this.#cluster);
    results.set(nodeInfo, passes);
    return passes;
  }

  #update(): void {
    for (const nodeInfo of this.#changed) this.#sort(nodeInfo);
    this.#changed.clear();
  }

  #sort(nodeInfo: NodeInfo): void {
    const bin = this.#binOf.get(nodeInfo) ?? newBin(nodeInfo, 0);
    if (nodeInfo.isPresent && !this.#closed.has(nodeInfo)) {
      this.#binOf.set(nodeInfo, bin);
      this.#bins.put(bin, { cpuMilli: nodeInfo.free(CPU), memoryBytes: nodeInfo.free(MEMORY) });
    } else {
      this.#binOf.delete(nodeInfo);
      this.#bins.drop(bin);
    }
  }
}

/** Weighs all CPU of the cluster as much as all its memory. */
function capacityWeights({ nodeInfos }: ClusterState): {
  readonly cpu: number;
  readonly memory: number;
} {
  const total = (resource: number): number =>
    nodeInfos.reduce(
      (sum, { allocatable, isPresent }) => sum + (isPresent ? (allocatable[resource] ?? 0) : 0),
      0,
    );
  return { cpu: 1, memory: total(CPU) / Math.max(1, total(MEMORY)) };
}
