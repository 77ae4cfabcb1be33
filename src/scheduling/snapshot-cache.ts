// SPDX-License-Identifier: Apache-2.0
// Keeps the snapshot of a cluster up to date from changes of its objects: an update costs as much as what changed, not as
// much as the cluster. The result is the same as that of a snapshot built from all objects.

import type { DaemonSet } from '../model/daemon-set.ts';
import type { Labels } from '../model/labels.ts';
import { isSameNode, type Node } from '../model/node.ts';
import { isSamePod, type Pod, podKey } from '../model/pod.ts';
import { NO_STORAGE, type StorageObjects } from '../model/storage-objects.ts';
import { type SharedState, Snapshot } from './snapshot.ts';
import { ClusterState } from './state/cluster-state.ts';
import { DEFAULT_FEATURE_GATES, type FeatureGates } from './state/feature-gates.ts';
import type { NodeInfo } from './state/node-info.ts';
import type { PlacedPod } from './state/placed-pod.ts';

export interface SnapshotChanges {
  /** By name; undefined: deleted. */
  readonly nodes?: ReadonlyMap<string, Node | undefined>;
  /** By `namespace/name`; undefined: deleted. */
  readonly pods?: ReadonlyMap<string, Pod | undefined>;
  /** The following are complete; absent: unchanged. */
  readonly daemonSets?: readonly DaemonSet[];
  readonly namespaces?: ReadonlyMap<string, Labels>;
  readonly storage?: StorageObjects;
}

export interface SnapshotObjects
  extends Pick<SnapshotChanges, 'daemonSets' | 'namespaces' | 'storage'> {
  readonly nodes: ReadonlyMap<string, Node>;
  readonly pods: ReadonlyMap<string, Pod>;
}

interface Settings {
  daemonSets: readonly DaemonSet[];
  namespaces: ReadonlyMap<string, Labels>;
  storage: StorageObjects;
  readonly featureGates: FeatureGates;
}

/**
 * Label groups, counters and domains of deleted objects are never released, so everything is built anew after so many
 * changes, or after ten for each pod.
 */
const MIN_CHANGES_BEFORE_REBUILD = 100_000;

export class SnapshotCache {
  readonly #settings: Settings;
  #cluster: ClusterState;
  #shared: SharedState;
  #snapshot: Snapshot;
  /** Pods on nodes of the cluster, by `namespace/name`. */
  #placed = new Map<string, PlacedPod>();
  /** Unfinished pods without a node, or on a node that is not known. */
  readonly #unplaced = new Map<string, Pod>();
  /** Ids of removed nodes. */
  #freeIds: number[] = [];
  /** Ids from here on belong to nodes that a derived snapshot added. */
  #nodeCount = 0;
  #changesSinceBuild = 0;
  #pending: readonly Pod[] | undefined;

  constructor(featureGates: Partial<FeatureGates> = {}) {
    this.#settings = {
      daemonSets: [],
      namespaces: new Map(),
      storage: NO_STORAGE,
      featureGates: { ...DEFAULT_FEATURE_GATES, ...featureGates },
    };
    this.#cluster = new ClusterState(this.#settings);
    this.#shared = { cluster: this.#cluster, current: undefined, isOutdated: false };
    this.#snapshot = this.#newSnapshot();
  }

  /** The cluster as of the last update. It and all snapshots derived from it are invalid after the next one. */
  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  /** Pods that wait for a node, without those that are being deleted. */
  get pending(): readonly Pod[] {
    this.#pending ??= [...this.#unplaced.values()].filter(
      ({ nodeName, isTerminating }) => nodeName === '' && !isTerminating,
    );
    return this.#pending;
  }

  /** As `update`, for maps of all objects: what they do not list is deleted. */
  replace({ nodes, pods, ...rest }: SnapshotObjects): Snapshot {
    const known = this.#snapshot.nodes.map(({ name }) => name);
    const keys = [...this.#placed.keys(), ...this.#unplaced.keys()];
    return this.update({
      ...rest,
      nodes: withDeleted(known, nodes),
      pods: withDeleted(keys, pods),
    });
  }

  update(changes: SnapshotChanges): Snapshot {
    this.#snapshot.activate();
    this.#cluster.dropNodeInfos(this.#nodeCount);
    this.#pending = undefined;
    const isRebuildNeeded = this.#updateSettings(changes);
    for (const [name, node] of changes.nodes ?? []) this.#putNode(name, node);
    for (const [key, pod] of changes.pods ?? []) this.#putPod(key, pod);
    const limit = Math.max(MIN_CHANGES_BEFORE_REBUILD, 10 * this.#placed.size);
    if (isRebuildNeeded || this.#changesSinceBuild > limit) this.#rebuild();
    this.#nodeCount = this.#cluster.nodeInfos.length;
    this.#cluster.generation += 1;
    this.#shared.isOutdated = true;
    this.#shared = { cluster: this.#cluster, current: undefined, isOutdated: false };
    this.#snapshot = this.#newSnapshot();
    return this.#snapshot;
  }

  /** Whether existing counters depend on what changed. */
  #updateSettings({ daemonSets, namespaces, storage }: SnapshotChanges): boolean {
    if (daemonSets !== undefined) this.#settings.daemonSets = daemonSets;
    if (storage !== undefined) {
      this.#settings.storage = storage;
      this.#cluster.storage.replace(storage);
    }
    if (namespaces === undefined) return false;
    this.#settings.namespaces = namespaces;
    return !this.#cluster.replaceNamespaces(namespaces);
  }

  #putNode(name: string, node: Node | undefined): void {
    const known = this.#cluster.nodeInfo(name);
    if (node === undefined) {
      if (known !== undefined) this.#removeNode(known);
    } else if (known === undefined) {
      this.#addNode(node);
    } else if (!isSameNode(known.node, node)) {
      this.#replaceNode(known, node);
    }
  }

  #addNode(node: Node): void {
    const nodeInfo = this.#cluster.newNodeInfo(node, this.#freeIds.pop());
    this.#cluster.addNode(nodeInfo);
    this.#changesSinceBuild += 1;
    for (const [key, pod] of this.#unplaced) {
      if (pod.nodeName !== node.name) continue;
      this.#unplaced.delete(key);
      this.#place(key, pod, nodeInfo);
    }
  }

  #removeNode(nodeInfo: NodeInfo): void {
    for (const placedPod of nodeInfo.placedPods.toReversed()) {
      this.#cluster.removePod(placedPod, nodeInfo);
      const key = podKey(placedPod.pod);
      this.#placed.delete(key);
      this.#unplaced.set(key, placedPod.pod);
    }
    this.#cluster.removeNode(nodeInfo);
    this.#freeIds.push(nodeInfo.id);
    this.#changesSinceBuild += 1;
  }

  #replaceNode(known: NodeInfo, node: Node): void {
    const placedPods = [...known.placedPods];
    for (const placedPod of placedPods) this.#cluster.removePod(placedPod, known);
    this.#cluster.removeNode(known);
    const nodeInfo = this.#cluster.newNodeInfo(node, known.id);
    this.#cluster.addNode(nodeInfo);
    for (const placedPod of placedPods) this.#cluster.addPod(placedPod, nodeInfo);
    this.#changesSinceBuild += 1;
  }

  #putPod(key: string, pod: Pod | undefined): void {
    const placedPod = this.#placed.get(key);
    if (placedPod !== undefined) {
      if (pod !== undefined && isSamePod(placedPod.pod, pod)) return;
      const nodeInfo = this.#cluster.nodeInfo(placedPod.pod.nodeName);
      if (nodeInfo !== undefined) this.#cluster.removePod(placedPod, nodeInfo);
      this.#placed.delete(key);
    }
    if (pod === undefined || pod.isFinished) {
      this.#unplaced.delete(key);
      return;
    }
    const nodeInfo = this.#cluster.nodeInfo(pod.nodeName);
    if (nodeInfo === undefined) this.#unplaced.set(key, pod);
    else {
      this.#unplaced.delete(key);
      this.#place(key, pod, nodeInfo);
    }
  }

  #place(key: string, pod: Pod, nodeInfo: NodeInfo): void {
    const placedPod = this.#cluster.newPlacedPod(pod, pod.held);
    this.#cluster.addPod(placedPod, nodeInfo);
    this.#placed.set(key, placedPod);
    this.#changesSinceBuild += 1;
  }

  #rebuild(): void {
    const present = this.#cluster.nodeInfos.filter(({ isPresent }) => isPresent);
    const placed = [...this.#placed];
    this.#cluster = new ClusterState(this.#settings);
    this.#placed = new Map();
    this.#freeIds = [];
    for (const { node } of present) {
      this.#cluster.addNode(this.#cluster.newNodeInfo(node));
    }
    for (const [key, { pod }] of placed) {
      const nodeInfo = this.#cluster.nodeInfo(pod.nodeName);
      if (nodeInfo !== undefined) this.#place(key, pod, nodeInfo);
    }
    this.#changesSinceBuild = 0;
  }

  #newSnapshot(): Snapshot {
    const waiting = [...this.#unplaced.values()].filter(
      ({ nodeName, nominatedNodeName }) => nodeName === '' && nominatedNodeName !== '',
    );
    return Snapshot.ofState(this.#shared, {
      daemonSets: this.#settings.daemonSets,
      nominated: Map.groupBy(waiting, (pod) => pod.nominatedNodeName),
    });
  }
}

function withDeleted<T>(
  known: readonly string[],
  now: ReadonlyMap<string, T>,
): ReadonlyMap<string, T | undefined> {
  const deleted = known.filter((key) => !now.has(key));
  return new Map<string, T | undefined>([
    ...deleted.map((key) => [key, undefined] as const),
    ...now,
  ]);
}
