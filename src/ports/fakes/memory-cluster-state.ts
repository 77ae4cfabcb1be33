// SPDX-License-Identifier: Apache-2.0
// What a cluster holds, apart from who looks at it: several MemoryClusters may share one, as replicas do.
import { type Pod, podKey } from '../../model/pod.ts';
import type { Taint } from '../../model/taints.ts';
import type {
  BootstrapTokenOrder,
  ClusterEvent,
  ClusterNode,
  ContestedKey,
  EvictionOutcome,
  NodeChange,
  NodeDeclaration,
  NodeRef,
  PodRef,
} from '../cluster.ts';
import { Conflict, NotFound } from '../errors.ts';
import { NodeHolders } from './memory-node-holders.ts';

export interface RecordedToken extends BootstrapTokenOrder {
  readonly token: string;
  readonly expiresAt: number;
}

export interface LeaseRecord {
  /** Empty: released. */
  readonly holder: string;
  readonly token: number;
  readonly durationMs: number;
  /** Changes with every write. */
  readonly version: number;
}

export class MemoryClusterState {
  readonly uid: string;
  serverCa = '-----BEGIN CERTIFICATE-----\nbWVtb3J5\n-----END CERTIFICATE-----\n';
  readonly nodes = new Map<string, ClusterNode>();
  readonly pods = new Map<string, Pod>();
  /** Pods that a budget protects, with its words. */
  readonly protectedPods = new Map<string, string>();
  readonly tokens: RecordedToken[] = [];
  readonly events: ClusterEvent[] = [];
  readonly leases = new Map<string, LeaseRecord>();
  revision = 1;
  readonly #watchers = new Set<() => void>();
  readonly #holders = new Map<string, NodeHolders>();

  constructor(uid: string) {
    this.uid = uid;
  }

  watch(onChange: () => void): () => void {
    this.#watchers.add(onChange);
    return () => this.#watchers.delete(onChange);
  }

  /** As the kubelet, a controller or a person would. */
  putNode(node: ClusterNode): void {
    const before = this.nodes.get(node.name);
    const holders = this.#holdersOf(node);
    holders.changedByOthers(before?.uid === node.uid ? before : undefined, node);
    this.#setNode({ ...node, declared: holders.declared });
  }

  /** As they would, too. */
  updateNode(name: string, change: Partial<ClusterNode>): void {
    const node = this.nodes.get(name);
    if (node === undefined) throw new NotFound('NODE_NOT_FOUND', `no node ${name}`);
    this.putNode({ ...node, ...change });
  }

  removeNode(name: string): void {
    const node = this.nodes.get(name);
    if (node === undefined) return;
    this.nodes.delete(name);
    this.#holders.delete(node.uid);
    this.#changed();
  }

  putPod(pod: Pod): void {
    this.pods.set(podKey(pod), pod);
    this.#changed();
  }

  removePod(pod: { readonly namespace: string; readonly name: string }): void {
    if (this.pods.delete(podKey(pod))) this.#changed();
  }

  declareNode(ref: NodeRef, declaration: NodeDeclaration): readonly ContestedKey[] {
    const node = this.#demand(ref);
    const { providerId = node.providerId } = declaration;
    if (node.providerId !== '' && node.providerId !== providerId) {
      throw new Conflict('PROVIDER_ID_SET', `node ${ref.name} has another provider id`);
    }
    const holders = this.#holdersOf(node);
    const { contested, labels, annotations } = holders.declare(node, declaration);
    this.#setNode({ ...node, labels, annotations, providerId, declared: holders.declared });
    return contested;
  }

  changeNode(ref: NodeRef, change: NodeChange): void {
    const node = this.#demand(ref);
    this.#setNode({
      ...node,
      taints: changedTaints(node.taints, change),
      unschedulable: change.unschedulable ?? node.unschedulable,
    });
  }

  deleteNode(ref: NodeRef): void {
    if (this.#node(ref) !== undefined) this.removeNode(ref.name);
  }

  evict(ref: PodRef): EvictionOutcome {
    const pod = this.pods.get(podKey(ref));
    if (pod === undefined || pod.uid !== ref.uid) return { outcome: 'already-gone' };
    const reason = this.protectedPods.get(podKey(ref));
    if (reason !== undefined) return { outcome: 'blocked', reason };
    this.removePod(ref);
    return { outcome: 'evicted' };
  }

  #node({ name, uid }: NodeRef): ClusterNode | undefined {
    const node = this.nodes.get(name);
    return node?.uid === uid ? node : undefined;
  }

  #demand(ref: NodeRef): ClusterNode {
    const node = this.#node(ref);
    if (node === undefined) throw new NotFound('NODE_NOT_FOUND', `node ${ref.name} is gone`);
    return node;
  }

  #setNode(node: ClusterNode): void {
    this.nodes.set(node.name, node);
    this.#changed();
  }

  #holdersOf({ uid }: NodeRef): NodeHolders {
    const holders = this.#holders.get(uid) ?? new NodeHolders();
    this.#holders.set(uid, holders);
    return holders;
  }

  #changed(): void {
    this.revision += 1;
    for (const onChange of this.#watchers) onChange();
  }
}

function changedTaints(current: readonly Taint[], change: NodeChange): readonly Taint[] {
  const added = change.addTaints ?? [];
  const kept = current.filter(
    (taint) =>
      change.removeTaintKeys?.includes(taint.key) !== true &&
      !added.some((one) => one.key === taint.key && one.effect === taint.effect),
  );
  return [...kept, ...added];
}
