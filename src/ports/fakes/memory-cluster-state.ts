// SPDX-License-Identifier: Apache-2.0
// The state of a cluster, without connections: several MemoryClusters may share one, as replicas do.
import { type Pod, podKey } from '../../model/pod.ts';
import { NO_STORAGE } from '../../model/storage-objects.ts';
import type { Taint } from '../../model/taints.ts';
import type {
  BootstrapTokenRequest,
  ClaimRef,
  ClusterEvent,
  ClusterNode,
  EvictionOutcome,
  FieldConflict,
  NodeChange,
  NodeDeclaration,
  NodeRef,
  PodRef,
  WorkloadObjects,
} from '../cluster.ts';
import { Conflict, NotFound } from '../errors.ts';
import { FieldManagers } from './memory-field-managers.ts';

interface RecordedToken extends BootstrapTokenRequest {
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

const NO_WORKLOADS: WorkloadObjects = {
  daemonSets: [],
  disruptionBudgets: [],
  namespaces: new Map(),
  storage: NO_STORAGE,
};

interface VolumeAttachment {
  readonly node: string;
  readonly volume: string;
  readonly claim?: ClaimRef;
}

export class MemoryClusterState {
  readonly uid: string;
  serverCa = '-----BEGIN CERTIFICATE-----\nbWVtb3J5\n-----END CERTIFICATE-----\n';
  readonly nodes = new Map<string, ClusterNode>();
  readonly pods = new Map<string, Pod>();
  /** Change it with `putWorkloads`. */
  workloads: WorkloadObjects = NO_WORKLOADS;
  /** Pods that a budget protects, with the budget's message. */
  readonly protectedPods = new Map<string, string>();
  readonly volumeAttachments: VolumeAttachment[] = [];
  /** Called instead of the immediate removal of an evicted pod; the pod is terminating. */
  onEvicted: ((pod: Pod) => void) | undefined;
  /** All tokens that were created. */
  readonly tokens: RecordedToken[] = [];
  readonly deletedTokens = new Set<string>();
  readonly events: ClusterEvent[] = [];
  readonly leases = new Map<string, LeaseRecord>();
  revision = 1;
  readonly #watchers = new Set<() => void>();
  readonly #managers = new Map<string, FieldManagers>();

  constructor(uid: string) {
    this.uid = uid;
  }

  get existingTokens(): readonly RecordedToken[] {
    return this.tokens.filter(({ token }) => !this.deletedTokens.has(token));
  }

  watch(onChange: () => void): () => void {
    this.#watchers.add(onChange);
    return () => this.#watchers.delete(onChange);
  }

  /** Writes as another field manager (kubelet, controller, user). */
  putNode(node: ClusterNode): void {
    const before = this.nodes.get(node.name);
    const managers = this.#managersOf(node);
    managers.changedByOthers(before?.uid === node.uid ? before : undefined, node);
    this.#setNode({ ...node, declared: managers.declared });
  }

  /** Writes as another field manager. */
  updateNode(name: string, change: Partial<ClusterNode>): void {
    const node = this.nodes.get(name);
    if (node === undefined) throw new NotFound('NODE_NOT_FOUND', `no node ${name}`);
    this.putNode({ ...node, ...change });
  }

  removeNode(name: string): void {
    const node = this.nodes.get(name);
    if (node === undefined) return;
    this.nodes.delete(name);
    this.#managers.delete(node.uid);
    this.#notifyChange();
  }

  putPod(pod: Pod): void {
    this.pods.set(podKey(pod), pod);
    this.#notifyChange();
  }

  removePod(pod: { readonly namespace: string; readonly name: string }): void {
    if (this.pods.delete(podKey(pod))) this.#notifyChange();
  }

  putWorkloads(change: Partial<WorkloadObjects>): void {
    this.workloads = { ...this.workloads, ...change };
    this.#notifyChange();
  }

  declareNode(ref: NodeRef, declaration: NodeDeclaration): readonly FieldConflict[] {
    const node = this.#requireNode(ref);
    const { providerId = node.providerId } = declaration;
    if (node.providerId !== '' && node.providerId !== providerId) {
      throw new Conflict('PROVIDER_ID_SET', `node ${ref.name} already has another provider id`);
    }
    const managers = this.#managersOf(node);
    const { conflicts, labels, annotations } = managers.declare(node, declaration);
    this.#setNode({ ...node, labels, annotations, providerId, declared: managers.declared });
    return conflicts;
  }

  changeNode(ref: NodeRef, change: NodeChange): void {
    const node = this.#requireNode(ref);
    this.#setNode({
      ...node,
      taints: applyTaintChange(node.taints, change),
      unschedulable: change.unschedulable ?? node.unschedulable,
      labels: { ...node.labels, ...change.labels },
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
    if (this.onEvicted === undefined) this.removePod(ref);
    else {
      this.putPod({ ...pod, isTerminating: true });
      this.onEvicted(pod);
    }
    return { outcome: 'evicted' };
  }

  podsOn(node: string): readonly Pod[] {
    return [...this.pods.values()].filter(({ nodeName }) => nodeName === node);
  }

  attachedVolumes(node: string, exceptClaims: readonly ClaimRef[]): readonly string[] {
    const isKept = ({ claim }: VolumeAttachment) =>
      claim !== undefined &&
      exceptClaims.some((one) => one.namespace === claim.namespace && one.name === claim.name);
    return this.volumeAttachments
      .filter((attachment) => attachment.node === node && !isKept(attachment))
      .map(({ volume }) => volume);
  }

  #node({ name, uid }: NodeRef): ClusterNode | undefined {
    const node = this.nodes.get(name);
    return node?.uid === uid ? node : undefined;
  }

  #requireNode(ref: NodeRef): ClusterNode {
    const node = this.#node(ref);
    if (node === undefined) throw new NotFound('NODE_NOT_FOUND', `node ${ref.name} is gone`);
    return node;
  }

  #setNode(node: ClusterNode): void {
    this.nodes.set(node.name, node);
    this.#notifyChange();
  }

  #managersOf({ uid }: NodeRef): FieldManagers {
    const managers = this.#managers.get(uid) ?? new FieldManagers();
    this.#managers.set(uid, managers);
    return managers;
  }

  #notifyChange(): void {
    this.revision += 1;
    for (const onChange of this.#watchers) onChange();
  }
}

function applyTaintChange(current: readonly Taint[], change: NodeChange): readonly Taint[] {
  const added = change.addTaints ?? [];
  const kept = current.filter(
    (taint) =>
      change.removeTaintKeys?.includes(taint.key) !== true &&
      !added.some((one) => one.key === taint.key && one.effect === taint.effect),
  );
  return [...kept, ...added];
}
