// SPDX-License-Identifier: Apache-2.0
// The autoscaler's cluster state between two loops: registered and unregistered instances, scale-ups in progress, and
// groups in back-off. Minutes of the real one are seconds here.
import type { Generation, RpcResponse } from '../../../interop/client.ts';
import { fakeNode } from '../../../interop/expectations.ts';
import { type NodeObject, readReadiness } from '../kube-objects.ts';
import { InstancesCache } from './instances-cache.ts';
import type { GrpcNode, NodeGroup, ProviderClient } from './provider-client.ts';

export const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler';
/** Five minutes and more in the real one: longer than any test runs. */
const BACKOFF_MS = 300_000;

export interface GroupState extends NodeGroup {
  target: number;
  readonly instances: readonly RpcResponse[];
  /** All Nodes, whatever their state. */
  readonly registered: readonly NodeObject[];
  /** Ready Nodes that are not being deleted. */
  readonly ready: readonly NodeObject[];
  /** Registered Nodes that are not Ready yet. */
  readonly notStarted: readonly NodeObject[];
  readonly unregistered: readonly string[];
  readonly longUnregistered: readonly string[];
}

export interface RegistryOptions {
  readonly provider: ProviderClient;
  readonly generation: Generation;
  /** The groups this autoscaler scales; of all other groups it only reads the state. */
  readonly groups: readonly string[];
  readonly provisionMs: number;
  readonly onUndo: (group: GroupState, count: number) => Promise<void>;
}

interface ScaleUp {
  increase: number;
  expectedBy: number;
}

interface IncorrectSize {
  readonly current: number;
  readonly expected: number;
  readonly since: number;
}

export class Registry {
  readonly cache: InstancesCache;
  readonly #options: RegistryOptions;
  readonly #unregisteredSince = new Map<string, number>();
  readonly #backedOffUntil = new Map<string, number>();
  readonly #scaleUps = new Map<string, ScaleUp>();
  readonly #incorrectSizes = new Map<string, IncorrectSize>();
  #states = new Map<string, GroupState>();

  constructor(order: RegistryOptions) {
    this.#options = order;
    this.cache = new InstancesCache(order.provider);
  }

  get states(): readonly GroupState[] {
    return [...this.#states.values()];
  }

  isBackedOff(id: string, now: number): boolean {
    return (this.#backedOffUntil.get(id) ?? 0) > now;
  }

  backOff(id: string, now: number): void {
    this.#backedOffUntil.set(id, now + BACKOFF_MS);
  }

  /** A second increase restarts the timeout of the first. */
  recordScaleUp(id: string, delta: number, now: number): void {
    const increase = (this.#scaleUps.get(id)?.increase ?? 0) + delta;
    if (increase <= 0) return void this.#scaleUps.delete(id);
    const expectedBy =
      delta > 0 ? now + this.#options.provisionMs : (this.#scaleUps.get(id)?.expectedBy ?? now);
    this.#scaleUps.set(id, { increase, expectedBy });
  }

  /** Throws when the target of a group, or instances that are not cached, cannot be read; that ends the loop. */
  async update(nodes: readonly NodeObject[], now: number): Promise<void> {
    const { provider, groups: own } = this.#options;
    const groups = await provider.listGroups();
    const targets = new Map<string, number>();
    for (const { id } of groups) targets.set(id, await provider.readTarget(id));
    for (const id of own) if (this.#isScalingUp(id)) this.cache.invalidate(id);
    const instances = await this.cache.readAll(groups, now);
    const before = this.#states;
    const members = await this.#groupNodes(nodes);
    const missing = await this.#findUnregistered(nodes, instances, now);
    this.#states = new Map();
    for (const group of groups.filter(({ id }) => own.includes(id))) {
      const registered = members.get(group.id) ?? [];
      const remaining = registered.filter((node) => !isBeingDeleted(node));
      const unregistered = missing.get(group.id) ?? [];
      const isLong = (id: string) => this.#isLongUnregistered(id, now);
      this.#states.set(group.id, {
        ...group,
        target: targets.get(group.id) ?? 0,
        instances: instances.get(group.id) ?? [],
        registered,
        ready: remaining.filter((node) => readReadiness(node) === 'True'),
        notStarted: remaining.filter((node) => readReadiness(node) !== 'True'),
        unregistered: unregistered.filter((id) => !isLong(id)),
        longUnregistered: unregistered.filter(isLong),
      });
      await provider.readOptions(group.id);
    }
    await this.#checkScaleUps(now);
    for (const state of this.states) this.#checkErrors(state, before.get(state.id), now);
    for (const state of this.states) this.#checkSize(state, now);
  }

  /** Reads the targets again after failed instances were deleted. */
  async recalculate(): Promise<void> {
    for (const state of this.states)
      state.target = await this.#options.provider.readTarget(state.id);
  }

  countUpcoming({ target, ready, longUnregistered }: GroupState): number {
    return Math.max(0, target - ready.length - longUnregistered.length);
  }

  /** Groups whose target has exceeded their Nodes for longer than the provision time. */
  listSurplus(now: number): readonly { readonly id: string; readonly count: number }[] {
    return [...this.#incorrectSizes]
      .filter(([, { since }]) => now - since > this.#options.provisionMs)
      .map(([id, { current, expected }]) => ({ id, count: expected - current }))
      .filter(({ count }) => count > 0);
  }

  async #groupNodes(nodes: readonly NodeObject[]): Promise<ReadonlyMap<string, NodeObject[]>> {
    const members = new Map<string, NodeObject[]>();
    for (const node of nodes) {
      const group = await this.#findGroup(toGrpcNode(node));
      if (group === undefined) continue;
      members.set(group.id, [...(members.get(group.id) ?? []), node]);
    }
    return members;
  }

  /** A node whose group cannot be read is left out of this loop. */
  async #findGroup(node: GrpcNode): Promise<NodeGroup | undefined> {
    const { provider } = this.#options;
    try {
      return await provider.findGroup(node);
    } catch (error) {
      if (!isRpcError(error)) throw error;
      provider.logError('NodeGroupForNode', error);
      return undefined;
    }
  }

  /** Instances without a Node, by the group that the provider returns for a fake Node. */
  async #findUnregistered(
    nodes: readonly NodeObject[],
    instances: ReadonlyMap<string, readonly RpcResponse[]>,
    now: number,
  ): Promise<ReadonlyMap<string, readonly string[]>> {
    const registered = new Set(nodes.map(({ spec }) => spec.providerID));
    const ids = [...instances.values()]
      .flat()
      .filter(({ status }) => status.instanceState !== 'instanceDeleting')
      .filter(({ status }) => !status.errorInfo?.errorCode)
      .map(({ id }) => id as string)
      .filter((id) => !registered.has(id));
    const gone = [...this.#unregisteredSince.keys()].filter((id) => !ids.includes(id));
    for (const id of gone) this.#unregisteredSince.delete(id);
    const missing = new Map<string, string[]>();
    for (const id of ids) {
      if (!this.#unregisteredSince.has(id)) this.#unregisteredSince.set(id, now);
      const group = await this.#findGroup(fakeNode(id) as GrpcNode);
      if (group !== undefined) missing.set(group.id, [...(missing.get(group.id) ?? []), id]);
    }
    return missing;
  }

  #isLongUnregistered(id: string, now: number): boolean {
    return now - (this.#unregisteredSince.get(id) ?? now) > this.#options.provisionMs;
  }

  #isScalingUp(id: string): boolean {
    return this.#scaleUps.has(id) && this.#hasUpcoming(id);
  }

  #hasUpcoming(id: string): boolean {
    const state = this.#states.get(id);
    if (state === undefined) return false;
    return state.target > state.registered.length - state.notStarted.length;
  }

  /** A scale-up succeeds when the target is reached. From 1.36 on a scale-up that timed out is undone. */
  async #checkScaleUps(now: number): Promise<void> {
    const { generation, onUndo } = this.#options;
    for (const [id, { increase, expectedBy }] of this.#scaleUps) {
      const state = this.#states.get(id);
      if (state === undefined || !this.#hasUpcoming(id)) {
        this.#scaleUps.delete(id);
        // The newest releases keep the back-off.
        if (generation === 'a0' || generation === 'a') this.#backedOffUntil.delete(id);
        continue;
      }
      if (expectedBy >= now) continue;
      this.backOff(id, now);
      this.#scaleUps.delete(id);
      if (generation === 'c') await onUndo(state, increase);
    }
  }

  /** Only new failures during a scale-up put the group in back-off. */
  #checkErrors(state: GroupState, before: GroupState | undefined, now: number): void {
    const known = new Set(filterFailed(before?.instances ?? []).map(({ id }) => id));
    const unseen = filterFailed(state.instances).filter(({ id }) => !known.has(id));
    if (unseen.length === 0 || !this.#isScalingUp(state.id)) return;
    this.recordScaleUp(state.id, -unseen.length, now);
    this.backOff(state.id, now);
  }

  #checkSize({ id, target, ...state }: GroupState, now: number): void {
    const current = state.registered.length;
    const missing = state.unregistered.length + state.longUnregistered.length;
    const known = this.#incorrectSizes.get(id);
    this.#incorrectSizes.delete(id);
    // A group without instances has no recorded size.
    if (current + missing === 0 || (current <= target && current >= target - missing)) return;
    const isSame = known?.current === current && known.expected === target;
    this.#incorrectSizes.set(id, isSame ? known : { current, expected: target, since: now });
  }
}

export function filterFailed(instances: readonly RpcResponse[]): readonly RpcResponse[] {
  return instances.filter(
    ({ status }) =>
      status.instanceState === 'instanceCreating' && Boolean(status.errorInfo?.errorCode),
  );
}

export function isBeingDeleted({ spec }: NodeObject): boolean {
  return spec.taints?.some(({ key }) => key === TO_BE_DELETED) === true;
}

export function isRpcError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'number';
}

export function toGrpcNode({ metadata, spec }: NodeObject): GrpcNode {
  const { name, labels = {}, annotations = {} } = metadata;
  return { name, providerID: spec.providerID ?? '', labels, annotations };
}
