// SPDX-License-Identifier: Apache-2.0
// The mutable state that all snapshots of a cluster share: nodes, placed pods, and the counters for affinity
// and topology spread. Counters are created on first use and updated with every change, so that a change costs
// as much as it changes, and so does its undo.

import { formatLabels, type Labels } from '../../model/labels.ts';
import type { Node } from '../../model/node.ts';
import type { Pod } from '../../model/pod.ts';
import type { PodAffinityTerm } from '../../model/pod-affinity.ts';
import { isEmptySelector, matchesSelector, type Selector } from '../../model/selector.ts';
import type { StorageObjects } from '../../model/storage-objects.ts';
import { findUntoleratedTaint, type Taint } from '../../model/taints.ts';
import { type NamespaceLabels, termSelectsExisting, termSelectsPending } from './affinity-terms.ts';
import { DomainCounter } from './domain-counter.ts';
import { EligibleNodes } from './eligible-nodes.ts';
import type { FeatureGates } from './feature-gates.ts';
import { type GroupIdentity, LabelGroup } from './label-group.ts';
import { LabelIndex } from './label-index.ts';
import { NodeInfo } from './node-info.ts';
import type { PlacedPod, StorageReservation } from './placed-pod.ts';
import { ResourceNames } from './resource-names.ts';
import { SpreadCounter } from './spread-counter.ts';
import { StorageState } from './storage-state.ts';
import { Topology } from './topology.ts';

/** Which nodes count for a spread constraint. Equal specs have equal keys. */
export interface EligibleSpec {
  readonly key: string;
  readonly topologyKey: string;
  readonly isEligible: (node: Node) => boolean;
}

/** Which pods a spread counter counts, and on which nodes. */
export interface SpreadSpec {
  readonly namespace: string;
  readonly selector: Selector;
  readonly nodes: EligibleSpec;
}

export interface ClusterStateOptions {
  readonly namespaces: NamespaceLabels;
  readonly storage: StorageObjects;
  readonly featureGates: FeatureGates;
}

export class ClusterState {
  readonly resources = new ResourceNames();
  readonly storage: StorageState;
  readonly featureGates: FeatureGates;
  /** Grows when the observed cluster changes; simulated changes are undone and do not count. */
  generation = 0;
  #namespaces: NamespaceLabels;
  readonly nodeInfos: NodeInfo[] = [];
  readonly #nodeInfoByName = new Map<string, NodeInfo>();
  #changedNodes: Set<NodeInfo> | undefined;
  readonly #topologies = new Map<string, Topology>();
  readonly #groups = new Map<string, LabelGroup>();
  readonly #labels = new LabelIndex();
  readonly #eligibleNodes = new Map<string, EligibleNodes>();
  readonly #spreadCounters = new Map<string, SpreadCounter>();
  readonly #affinityCounters = new Map<string, DomainCounter>();
  readonly #antiAffinityCounters = new Map<string, DomainCounter>();

  constructor({ namespaces, storage, featureGates }: ClusterStateOptions) {
    this.#namespaces = namespaces;
    this.storage = new StorageState(storage);
    this.featureGates = featureGates;
  }

  get namespaces(): NamespaceLabels {
    return this.#namespaces;
  }

  /** False when counters exist that depend on labels that changed: the state is then wrong and must be built anew. */
  replaceNamespaces(namespaces: NamespaceLabels): boolean {
    const before = this.#namespaces;
    this.#namespaces = namespaces;
    const textOf = (labels: Labels | undefined) => labels && formatLabels(labels);
    const changed = [...new Set([...before.keys(), ...namespaces.keys()])].filter(
      (name) => textOf(before.get(name)) !== textOf(namespaces.get(name)),
    );
    if (changed.length === 0) return true;
    const used = new Set(Array.from(this.#groups.values(), ({ namespace }) => namespace));
    return changed.every((name) => !used.has(name));
  }

  /** The first taint that repels the pod. */
  findUntoleratedTaint(pod: Pod, node: Node): Taint | undefined {
    const { taints } = node;
    if (taints.length === 0 || this.featureGates.TaintTolerationComparisonOperators)
      return findUntoleratedTaint(taints, pod.tolerations);
    return findUntoleratedTaint(
      taints,
      pod.tolerations.filter(({ operator }) => operator !== 'Lt' && operator !== 'Gt'),
    );
  }

  nodeInfo(name: string): NodeInfo | undefined {
    const nodeInfo = this.#nodeInfoByName.get(name);
    return nodeInfo?.isPresent === true ? nodeInfo : undefined;
  }

  /** From now on, collects the nodes that are added, removed, or get or lose a pod. Starts with all of them. */
  trackChangedNodes(): Set<NodeInfo> {
    this.#changedNodes ??= new Set(this.nodeInfos);
    return this.#changedNodes;
  }

  /** Assigns a node its id, which may be that of a removed node. The node is absent until `addNode`. */
  newNodeInfo(node: Node, id: number = this.nodeInfos.length): NodeInfo {
    const nodeInfo = new NodeInfo(id, node, this.resources.vector(node.allocatable));
    this.nodeInfos[id] = nodeInfo;
    return nodeInfo;
  }

  /** Drops nodes that were only tried out. None of them may be in use. */
  dropNodeInfos(from: number): void {
    this.nodeInfos.length = from;
  }

  addNode(nodeInfo: NodeInfo): void {
    nodeInfo.isPresent = true;
    this.#changedNodes?.add(nodeInfo);
    this.#nodeInfoByName.set(nodeInfo.node.name, nodeInfo);
    for (const topology of this.#topologies.values()) topology.add(nodeInfo.id, nodeInfo.node);
    for (const nodes of this.#eligibleNodes.values()) nodes.addNode(nodeInfo.id);
  }

  /** The node must not have pods. */
  removeNode(nodeInfo: NodeInfo): void {
    for (const nodes of this.#eligibleNodes.values()) nodes.removeNode(nodeInfo.id);
    for (const topology of this.#topologies.values()) topology.remove(nodeInfo.id);
    nodeInfo.isPresent = false;
    this.#changedNodes?.add(nodeInfo);
    this.#nodeInfoByName.delete(nodeInfo.node.name);
  }

  newPlacedPod(pod: Pod, held: Pod['held'], reservation?: StorageReservation): PlacedPod {
    return {
      pod,
      labelGroup: this.group(pod),
      held: this.resources.demand(held),
      antiAffinityCounters: pod.antiAffinity.map((term) => this.#antiAffinityCounter(term)),
      moving: undefined,
      ...(reservation !== undefined && { reservation }),
    };
  }

  addPod(placedPod: PlacedPod, nodeInfo: NodeInfo): void {
    nodeInfo.addPod(placedPod);
    this.#changedNodes?.add(nodeInfo);
    placedPod.labelGroup.addPods(nodeInfo.id, 1);
    for (const counter of placedPod.antiAffinityCounters) counter.add(nodeInfo.id, 1);
    if (placedPod.pod.volumes.length > 0) this.storage.addPod(placedPod, nodeInfo.node.name);
  }

  removePod(placedPod: PlacedPod, nodeInfo: NodeInfo): void {
    nodeInfo.removePod(placedPod);
    this.#changedNodes?.add(nodeInfo);
    placedPod.labelGroup.addPods(nodeInfo.id, -1);
    for (const counter of placedPod.antiAffinityCounters) counter.add(nodeInfo.id, -1);
    if (placedPod.pod.volumes.length > 0) this.storage.removePod(placedPod);
  }

  group(identity: GroupIdentity): LabelGroup {
    const key = `${identity.namespace} ${identity.isTerminating} ${formatLabels(identity.labels)}`;
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    const group = new LabelGroup(identity);
    this.#groups.set(key, group);
    this.#labels.add(group);
    return group;
  }

  topology(key: string): Topology {
    const known = this.#topologies.get(key);
    if (known !== undefined) return known;
    const topology = new Topology(key);
    for (const nodeInfo of this.nodeInfos)
      if (nodeInfo.isPresent) topology.add(nodeInfo.id, nodeInfo.node);
    this.#topologies.set(key, topology);
    return topology;
  }

  spreadCounter(spec: SpreadSpec): SpreadCounter {
    const { namespace, selector, nodes } = spec;
    const key = JSON.stringify([namespace, selector, nodes.key]);
    const known = this.#spreadCounters.get(key);
    if (known !== undefined) return known;
    const counter = new SpreadCounter(this.#nodesFor(nodes));
    this.#spreadCounters.set(key, counter);
    // As in the scheduler, an empty selector matches the pod itself, but no placed pod is counted.
    if (isEmptySelector(selector)) return counter;
    this.#labels.watch([selector], (group) => {
      const isCounted = !group.isTerminating && group.namespace === namespace;
      if (isCounted && matchesSelector(selector, group.labels)) group.attach(counter);
    });
    return counter;
  }

  #nodesFor({ key, topologyKey, isEligible }: EligibleSpec): EligibleNodes {
    const known = this.#eligibleNodes.get(key);
    if (known !== undefined) return known;
    const { nodeInfos } = this;
    const nodes = new EligibleNodes(this.topology(topologyKey), (id) => {
      const nodeInfo = nodeInfos[id];
      return nodeInfo !== undefined && isEligible(nodeInfo.node);
    });
    for (const nodeInfo of nodeInfos) if (nodeInfo.isPresent) nodes.addNode(nodeInfo.id);
    this.#eligibleNodes.set(key, nodes);
    return nodes;
  }

  /** Counts placed pods that all these terms of a pending pod select, by domain of one topology key. */
  affinityCounter(terms: readonly PodAffinityTerm[], topologyKey: string): DomainCounter {
    const key = `${topologyKey} ${JSON.stringify(terms)}`;
    const known = this.#affinityCounters.get(key);
    if (known !== undefined) return known;
    const counter = new DomainCounter(this.topology(topologyKey));
    this.#affinityCounters.set(key, counter);
    this.#labels.watch(
      terms.map(({ selector }) => selector),
      (group) => {
        const isSelected = terms.every((term) => termSelectsExisting(term, group, this.namespaces));
        if (isSelected) group.attach(counter);
      },
    );
    return counter;
  }

  // Pods with equal anti-affinity terms share a counter.
  #antiAffinityCounter(term: PodAffinityTerm): DomainCounter {
    const key = JSON.stringify(term);
    const known = this.#antiAffinityCounters.get(key);
    if (known !== undefined) return known;
    const counter = new DomainCounter(this.topology(term.topologyKey));
    this.#antiAffinityCounters.set(key, counter);
    this.#labels.watch([term.selector], (group) => {
      if (termSelectsPending(term, group, this.namespaces)) group.rejectingCounters.push(counter);
    });
    return counter;
  }
}
