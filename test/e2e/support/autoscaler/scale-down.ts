// SPDX-License-Identifier: Apache-2.0
// Nodes that are not needed: found, tainted, drained, and given back to the provider, each on its own while the loops go
// on. Minutes are seconds here.
import { performance } from 'node:perf_hooks';
import type { Generation } from '../../../interop/client.ts';
import { type Api, waitUntil } from '../../controlplane/index.ts';
import { type NodeObject, nodeNamed } from '../kube-objects.ts';
import { type Place, podsOn, putAll, utilization } from './places.ts';
import { pods, type WaitingPod } from './pods.ts';
import type { ProviderClient } from './provider-client.ts';
import { asAsked, type GroupState, isRpcError, TO_BE_DELETED } from './registry.ts';

const UNNEEDED_MS = 2_000;
const DELAY_AFTER_FAILURE_MS = 3_000;
const THRESHOLD = 0.5;
const EMPTY_AT_ONCE = 10;
const DRAINED_AT_ONCE = 1;

export interface Removal {
  readonly group: string;
  readonly node: string;
  /** When the provider was asked; undefined where it did not come to that, or was refused. */
  readonly askedAt: number | undefined;
  readonly evicted: number;
}

export interface ScaleDownOrder {
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
  readonly #order: ScaleDownOrder;
  readonly #unneededSince = new Map<string, number>();
  readonly #underWay = new Map<string, Candidate>();
  /** By uid: a list of Nodes may be from before the taint. */
  readonly #given = new Set<string>();
  #failedAt = Number.NEGATIVE_INFINITY;
  #crash: unknown;

  constructor(order: ScaleDownOrder) {
    this.#order = order;
  }

  /** Begins what is due, and waits for nothing of it. */
  run(groups: readonly GroupState[], places: readonly Place[], all: readonly WaitingPod[]): void {
    if (this.#crash !== undefined) throw this.#crash;
    const now = performance.now();
    const unneeded = this.#unneeded(groups, places, all);
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
      if (now - since > UNNEEDED_MS && this.#mayBegin(one)) this.#begin(one);
    }
  }

  #unneeded(
    groups: readonly GroupState[],
    places: readonly Place[],
    all: readonly WaitingPod[],
  ): readonly Candidate[] {
    const found: Candidate[] = [];
    const left = new Set(places.filter(({ node }) => node !== undefined));
    for (const group of groups) {
      for (const place of places) {
        const { node } = place;
        if (node === undefined || !group.ready.includes(node)) continue;
        if (this.#isLeaving(node) || utilization(place) >= THRESHOLD) continue;
        const there = podsOn(node, all);
        const isEmpty = there.length === 0 && utilization(place) === 0;
        left.delete(place);
        if (isEmpty || canMove(there, [...left])) found.push({ group, node, isEmpty });
        else left.add(place);
      }
    }
    return found;
  }

  #isLeaving({ metadata }: NodeObject): boolean {
    return this.#underWay.has(metadata.name) || this.#given.has(metadata.uid);
  }

  /** Never below the minimum, counting those that are on their way to the provider. */
  #mayBegin({ group, isEmpty }: Candidate): boolean {
    const others = [...this.#underWay.values()];
    const ofGroup = others.filter((one) => one.group.id === group.id).length;
    if (group.target - ofGroup <= group.min) return false;
    const alike = others.filter((one) => one.isEmpty === isEmpty).length;
    return alike < (isEmpty ? EMPTY_AT_ONCE : DRAINED_AT_ONCE);
  }

  #begin(candidate: Candidate): void {
    const { name } = candidate.node.metadata;
    this.#underWay.set(name, candidate);
    this.#remove(candidate)
      .catch((error: unknown) => {
        this.#crash = error;
      })
      .finally(() => this.#underWay.delete(name));
  }

  async #remove({ group, node }: Candidate): Promise<void> {
    const { provider, generation, onRemoval } = this.#order;
    const { name } = node.metadata;
    await this.#taint(name, true);
    const evicted = await this.#drain(node);
    try {
      const now = await provider.groupOf(asAsked(node));
      if (now?.id !== group.id) throw new Error(`${name} is of group "${now?.id}" now`);
      const askedAt = performance.now();
      await provider.deleteNodes(group.id, [asAsked(node)]);
      this.#given.add(node.metadata.uid);
      onRemoval({ group: group.id, node: name, askedAt, evicted });
      // From 1.36 on, for its figures.
      if (generation === 'c') await provider.template(group.id);
    } catch (error) {
      if (!isRpcError(error)) throw error;
      provider.trouble('scale-down', error);
      this.#failedAt = performance.now();
      onRemoval({ group: group.id, node: name, askedAt: undefined, evicted });
      await this.#taint(name, false);
    }
  }

  /** Whoever is still there after the eviction is waited for. */
  async #drain(node: NodeObject): Promise<number> {
    const { api } = this.#order;
    const there = podsOn(node, await pods(api));
    for (const { metadata } of there) {
      const { name, namespace } = metadata;
      await api.create(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace },
      });
    }
    await waitUntil(`${node.metadata.name} is drained`, async () => {
      return podsOn(node, await pods(api)).length === 0;
    });
    return there.length;
  }

  async #taint(name: string, isLeaving: boolean): Promise<void> {
    const { api } = this.#order;
    const node = await nodeNamed(api, name);
    if (node === undefined) return;
    const others = (node.spec.taints ?? []).filter(({ key }) => key !== TO_BE_DELETED);
    const seconds = String(Math.floor(Date.now() / 1_000));
    const own = { key: TO_BE_DELETED, value: seconds, effect: 'NoSchedule' };
    await api.patch(`/api/v1/nodes/${name}`, {
      spec: { taints: isLeaving ? [...others, own] : others, unschedulable: isLeaving },
    });
  }
}

/** A pod that nobody would make again keeps its node. */
function canMove(there: readonly WaitingPod[], places: readonly Place[]): boolean {
  if (there.some(({ metadata }) => metadata.ownerReferences === undefined)) return false;
  const copies = places.map((place) => ({ ...place, room: { ...place.room } }));
  return putAll(there, copies).length === 0;
}
