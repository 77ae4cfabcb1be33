// SPDX-License-Identifier: Apache-2.0
// A cluster at one moment, as a value. Derived snapshots share one mutable state and store only their changes.
// Using a snapshot moves the state to it by undoing and redoing changes, which costs as much as the difference.

import type { DaemonSet } from '../model/daemon-set.ts';
import type { Labels } from '../model/labels.ts';
import type { Node } from '../model/node.ts';
import type { Pod } from '../model/pod.ts';
import { NO_STORAGE, type StorageObjects } from '../model/storage-objects.ts';
import { ClusterState } from './state/cluster-state.ts';
import { DEFAULT_FEATURE_GATES, type FeatureGates } from './state/feature-gates.ts';
import type { NodeInfo } from './state/node-info.ts';
import type { PlacedPod } from './state/placed-pod.ts';

export interface ClusterObjects {
  readonly nodes: readonly Node[];
  /** Placed pods and nominated pods (`nominatedNodeName`). Others are ignored. */
  readonly pods?: readonly Pod[];
  /** Labels of namespaces by name. */
  readonly namespaces?: ReadonlyMap<string, Labels>;
  readonly storage?: Partial<StorageObjects>;
  readonly daemonSets?: readonly DaemonSet[];
  /** Feature gates of kube-scheduler. Those not listed have the defaults of Kubernetes 1.36. */
  readonly featureGates?: Partial<FeatureGates> | undefined;
}

export type ClusterChange =
  | {
      readonly kind: 'add-pod' | 'remove-pod';
      readonly placedPod: PlacedPod;
      readonly nodeInfo: NodeInfo;
    }
  | { readonly kind: 'add-node' | 'remove-node'; readonly nodeInfo: NodeInfo };

export class Snapshot {
  readonly daemonSets: readonly DaemonSet[];
  /** Nominated pods by node. */
  readonly nominated: ReadonlyMap<string, readonly Pod[]>;
  readonly #shared: SharedState;
  readonly #parent: Snapshot | undefined;
  readonly #changes: readonly ClusterChange[];
  readonly #depth: number;

  private constructor(
    shared: SharedState,
    rest: Pick<Snapshot, 'daemonSets' | 'nominated'>,
    from?: { readonly parent: Snapshot; readonly changes: readonly ClusterChange[] },
  ) {
    this.#shared = shared;
    this.daemonSets = rest.daemonSets;
    this.nominated = rest.nominated;
    this.#parent = from?.parent;
    this.#changes = from?.changes ?? [];
    this.#depth = from === undefined ? 0 : from.parent.#depth + 1;
  }

  static of(objects: ClusterObjects): Snapshot {
    const cluster = new ClusterState({
      namespaces: objects.namespaces ?? new Map(),
      storage: { ...NO_STORAGE, ...objects.storage },
      featureGates: { ...DEFAULT_FEATURE_GATES, ...objects.featureGates },
    });
    for (const node of objects.nodes) cluster.addNode(newNodeInfo(cluster, node));
    const running = (objects.pods ?? []).filter((pod) => !pod.isFinished);
    for (const pod of running) {
      const nodeInfo = cluster.nodeInfo(pod.nodeName);
      if (nodeInfo !== undefined) cluster.addPod(cluster.newPlacedPod(pod, pod.held), nodeInfo);
    }
    const waiting = running.filter((pod) => pod.nodeName === '' && pod.nominatedNodeName !== '');
    const shared: SharedState = { cluster, current: undefined, isOutdated: false };
    return Snapshot.ofState(shared, {
      daemonSets: objects.daemonSets ?? [],
      nominated: Map.groupBy(waiting, (pod) => pod.nominatedNodeName),
    });
  }

  /** Of the state as it is. The state may change only when the snapshot is outdated. */
  static ofState(shared: SharedState, rest: Pick<Snapshot, 'daemonSets' | 'nominated'>): Snapshot {
    const snapshot = new Snapshot(shared, rest);
    shared.current = snapshot;
    return snapshot;
  }

  /**
   * Moves the shared state to this snapshot and returns it. Valid until another snapshot of the cluster is
   * used. Throws for an outdated snapshot, which is a mistake of the caller.
   */
  activate(): ClusterState {
    const { cluster, current, isOutdated } = this.#shared;
    if (isOutdated) throw new RangeError('the cluster has changed since this snapshot was taken');
    if (current !== undefined && current !== this) Snapshot.#replay(current, this, cluster);
    this.#shared.current = this;
    return cluster;
  }

  static #replay(from: Snapshot, to: Snapshot, cluster: ClusterState): void {
    const redo: Snapshot[] = [];
    let here = from;
    let there = to;
    while (here !== there) {
      if (here.#depth >= there.#depth && here.#parent !== undefined) {
        for (const change of here.#changes.toReversed()) revertChange(cluster, change);
        here = here.#parent;
      } else {
        redo.push(there);
        there = there.#parent ?? here;
      }
    }
    for (const snapshot of redo.toReversed()) {
      for (const change of snapshot.#changes) applyChange(cluster, change);
    }
  }

  /** Derives a snapshot that contains the changes made by `edit`. */
  fork(edit: (draft: Draft) => void): Snapshot {
    const cluster = this.activate();
    const draft = new Draft(cluster);
    try {
      edit(draft);
    } finally {
      draft.undo();
    }
    return new Snapshot(this.#shared, this, { parent: this, changes: draft.changes });
  }

  get nodes(): readonly Node[] {
    return this.activate()
      .nodeInfos.filter((nodeInfo) => nodeInfo.isPresent)
      .map((nodeInfo) => nodeInfo.node);
  }

  podsOn(nodeName: string): readonly Pod[] {
    const nodeInfo = this.activate().nodeInfo(nodeName);
    return nodeInfo === undefined ? [] : nodeInfo.placedPods.map((one) => one.pod);
  }
}

export interface SharedState {
  readonly cluster: ClusterState;
  current: Snapshot | undefined;
  /** The state has changed: its snapshots describe a cluster that is no more. */
  isOutdated: boolean;
}

/** An ordered list of changes to the shared state that can be undone. */
export class Draft {
  readonly cluster: ClusterState;
  readonly changes: ClusterChange[] = [];

  constructor(cluster: ClusterState) {
    this.cluster = cluster;
  }

  addPod(placedPod: PlacedPod, nodeInfo: NodeInfo): void {
    this.#apply({ kind: 'add-pod', placedPod, nodeInfo });
  }

  removePod(placedPod: PlacedPod, nodeInfo: NodeInfo): void {
    this.#apply({ kind: 'remove-pod', placedPod, nodeInfo });
  }

  addNode(node: Node): NodeInfo {
    const nodeInfo = newNodeInfo(this.cluster, node);
    this.#apply({ kind: 'add-node', nodeInfo });
    return nodeInfo;
  }

  /** Removes the node and its pods. */
  removeNode(nodeInfo: NodeInfo): void {
    for (const placedPod of nodeInfo.placedPods.toReversed()) this.removePod(placedPod, nodeInfo);
    this.#apply({ kind: 'remove-node', nodeInfo });
  }

  undo(): void {
    for (const change of this.changes.toReversed()) revertChange(this.cluster, change);
  }

  /** Undoes and forgets the changes after the first `length`. */
  undoTo(length: number): void {
    for (const change of this.changes.splice(length).toReversed())
      revertChange(this.cluster, change);
  }

  #apply(change: ClusterChange): void {
    applyChange(this.cluster, change);
    this.changes.push(change);
  }
}

function newNodeInfo(cluster: ClusterState, node: Node): NodeInfo {
  if (cluster.nodeInfo(node.name) !== undefined)
    throw new RangeError(`node '${node.name}' is already in this snapshot`);
  return cluster.newNodeInfo(node);
}

function applyChange(cluster: ClusterState, change: ClusterChange): void {
  switch (change.kind) {
    case 'add-pod':
      return cluster.addPod(change.placedPod, change.nodeInfo);
    case 'remove-pod':
      return cluster.removePod(change.placedPod, change.nodeInfo);
    case 'add-node':
      return cluster.addNode(change.nodeInfo);
    case 'remove-node':
      return cluster.removeNode(change.nodeInfo);
  }
}

function revertChange(cluster: ClusterState, change: ClusterChange): void {
  switch (change.kind) {
    case 'add-pod':
      return cluster.removePod(change.placedPod, change.nodeInfo);
    case 'remove-pod':
      return cluster.addPod(change.placedPod, change.nodeInfo);
    case 'add-node':
      return cluster.removeNode(change.nodeInfo);
    case 'remove-node':
      return cluster.addNode(change.nodeInfo);
  }
}
