// SPDX-License-Identifier: Apache-2.0
// Scale-down: finds unneeded nodes, taints, drains and deletes them, each concurrently with the loops. Minutes of the
// real one are seconds here.
import { performance } from 'node:perf_hooks';
import type { Generation } from '../../../interop/client.ts';
import { type Api, waitUntil } from '../../controlplane/index.ts';
import { findNode, type NodeObject } from '../kube-objects.ts';
import { type AutoscalerPod, listPods } from './pods.ts';
import type { ProviderClient } from './provider-client.ts';
import { type GroupState, isRpcError, TO_BE_DELETED, toGrpcNode } from './registry.ts';
import {
  computeUtilization,
  filterPodsOn,
  placePods,
  type SimulatedNode,
} from './simulated-nodes.ts';

const UNNEEDED_MS = 2_000;
const DELAY_AFTER_FAILURE_MS = 3_000;
const UTILIZATION_THRESHOLD = 0.5;
const MAX_EMPTY_DELETIONS = 10;
const MAX_DRAINS = 1;

export interface Removal {
  readonly group: string;
  readonly node: string;
  /** When the deletion was requested; undefined when it was refused or not reached. */
  readonly requestedAt: number | undefined;
  readonly evicted: number;
}

export interface ScaleDownOptions {
  readonly api: Api;
  readonly provider: ProviderClient;
  readonly generation: Generation;
  readonly onRemoval: (removal: Removal) => void;
}

interface Candidate {
  readonly group: GroupState;
  readonly node: NodeObject;
  readonly isEmpty: boolean;
}

export class ScaleDown {
  readonly #options: ScaleDownOptions;
  readonly #unneededSince = new Map<string, number>();
  readonly #inProgress = new Map<string, Candidate>();
  /** UIDs of deleted Nodes: a list may be older than the taint. */
  readonly #deletedUids = new Set<string>();
  #failedAt = Number.NEGATIVE_INFINITY;
  #crash: unknown;

  constructor(order: ScaleDownOptions) {
    this.#options = order;
  }

  /** Starts due deletions without waiting for them. */
  run(
    groups: readonly GroupState[],
    nodes: readonly SimulatedNode[],
    all: readonly AutoscalerPod[],
  ): void {
    if (this.#crash !== undefined) throw this.#crash;
    const now = performance.now();
    const unneeded = this.#findUnneeded(groups, nodes, all);
    const names = new Set(unneeded.map(({ node }) => node.metadata.name));
    for (const name of this.#unneededSince.keys()) {
      if (!names.has(name)) this.#unneededSince.delete(name);
    }
    for (const name of names) {
      if (!this.#unneededSince.has(name)) this.#unneededSince.set(name, now);
    }
    if (now - this.#failedAt < DELAY_AFTER_FAILURE_MS) return;
    for (const one of unneeded) {
      const since = this.#unneededSince.get(one.node.metadata.name) ?? now;
      if (now - since > UNNEEDED_MS && this.#canBegin(one)) this.#begin(one);
    }
  }

  #findUnneeded(
    groups: readonly GroupState[],
    nodes: readonly SimulatedNode[],
    all: readonly AutoscalerPod[],
  ): readonly Candidate[] {
    const found: Candidate[] = [];
    const left = new Set(nodes.filter(({ node }) => node !== undefined));
    for (const group of groups) {
      for (const simulated of nodes) {
        const { node } = simulated;
        if (node === undefined || !group.ready.includes(node)) continue;
        if (this.#isBeingDeleted(node) || computeUtilization(simulated) >= UTILIZATION_THRESHOLD)
          continue;
        const there = filterPodsOn(node, all);
        const isEmpty = there.length === 0 && computeUtilization(simulated) === 0;
        left.delete(simulated);
        if (isEmpty || canMove(there, [...left])) found.push({ group, node, isEmpty });
        else left.add(simulated);
      }
    }
    return found;
  }

  #isBeingDeleted({ metadata }: NodeObject): boolean {
    return this.#inProgress.has(metadata.name) || this.#deletedUids.has(metadata.uid);
  }

  /** Never below the minimum; deletions in progress count. */
  #canBegin({ group, isEmpty }: Candidate): boolean {
    const others = [...this.#inProgress.values()];
    const ofGroup = others.filter((one) => one.group.id === group.id).length;
    if (group.target - ofGroup <= group.min) return false;
    const alike = others.filter((one) => one.isEmpty === isEmpty).length;
    return alike < (isEmpty ? MAX_EMPTY_DELETIONS : MAX_DRAINS);
  }

  #begin(candidate: Candidate): void {
    const { name } = candidate.node.metadata;
    this.#inProgress.set(name, candidate);
    this.#remove(candidate)
      .catch((error: unknown) => {
        this.#crash = error;
      })
      .finally(() => this.#inProgress.delete(name));
  }

  async #remove({ group, node }: Candidate): Promise<void> {
    const { provider, generation, onRemoval } = this.#options;
    const { name } = node.metadata;
    await this.#taint(name, true);
    const evicted = await this.#drain(node);
    try {
      const now = await provider.findGroup(toGrpcNode(node));
      if (now?.id !== group.id) throw new Error(`${name} is now in group "${now?.id}"`);
      const requestedAt = performance.now();
      await provider.deleteNodes(group.id, [toGrpcNode(node)]);
      this.#deletedUids.add(node.metadata.uid);
      onRemoval({ group: group.id, node: name, requestedAt, evicted });
      // From 1.36 on, for its metrics.
      if (generation === 'c') await provider.readTemplate(group.id);
    } catch (error) {
      if (!isRpcError(error)) throw error;
      provider.logError('scale-down', error);
      this.#failedAt = performance.now();
      onRemoval({ group: group.id, node: name, requestedAt: undefined, evicted });
      await this.#taint(name, false);
    }
  }

  /** Evicts the pods and waits until they are gone. */
  async #drain(node: NodeObject): Promise<number> {
    const { api } = this.#options;
    const there = filterPodsOn(node, await listPods(api));
    for (const { metadata } of there) {
      const { name, namespace } = metadata;
      await api.create(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace },
      });
    }
    await waitUntil(`${node.metadata.name} is drained`, async () => {
      return filterPodsOn(node, await listPods(api)).length === 0;
    });
    return there.length;
  }

  async #taint(name: string, isLeaving: boolean): Promise<void> {
    const { api } = this.#options;
    const node = await findNode(api, name);
    if (node === undefined) return;
    const others = (node.spec.taints ?? []).filter(({ key }) => key !== TO_BE_DELETED);
    const seconds = String(Math.floor(Date.now() / 1_000));
    const own = { key: TO_BE_DELETED, value: seconds, effect: 'NoSchedule' };
    await api.patch(`/api/v1/nodes/${name}`, {
      spec: { taints: isLeaving ? [...others, own] : others, unschedulable: isLeaving },
    });
  }
}

/** A pod without an owner keeps its node, because no controller would recreate it. */
function canMove(there: readonly AutoscalerPod[], nodes: readonly SimulatedNode[]): boolean {
  if (there.some(({ metadata }) => metadata.ownerReferences === undefined)) return false;
  const copies = nodes.map((node) => ({ ...node, free: { ...node.free } }));
  return placePods(there, copies).length === 0;
}
