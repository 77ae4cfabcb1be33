// SPDX-License-Identifier: Apache-2.0
// What the autoscaler knows of the groups between two loops: who is there, who is missing and since when, which scale-ups
// are under way, which group is left alone after a failure. Minutes are seconds here.
import type { Generation, RpcResponse } from '../../../interop/client.ts';
import { fakeNode } from '../../../interop/expectations.ts';
import { type NodeObject, readiness } from '../kube-objects.ts';
import { InstancesCache } from './instances-cache.ts';
import type { AskedNode, NodeGroup, ProviderClient } from './provider-client.ts';

export const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler';
/** Five minutes and more for the real one: longer than any test looks. */
const BACKOFF_MS = 300_000;

export interface GroupState extends NodeGroup {
  target: number;
  readonly instances: readonly RpcResponse[];
  /** Nodes, whatever their state. */
  readonly registered: readonly NodeObject[];
  /** Those of them that are at work and stay. */
  readonly ready: readonly NodeObject[];
  /** Registered and not Ready yet: still on their way. */
  readonly notStarted: readonly NodeObject[];
  readonly unregistered: readonly string[];
  readonly longUnregistered: readonly string[];
}

export interface RegistryOrder {
  readonly provider: ProviderClient;
  readonly generation: Generation;
  /** Decided about; of all others only the state is asked for, as for these. */
  readonly groups: readonly string[];
  readonly provisionMs: number;
  readonly onUndo: (group: GroupState, count: number) => Promise<void>;
}

interface ScaleUp {
  increase: number;
  expectedBy: number;
}

interface WrongSize {
  readonly current: number;
  readonly expected: number;
  readonly since: number;
}

export class Registry {
  readonly cache: InstancesCache;
  readonly #order: RegistryOrder;
  readonly #unregisteredSince = new Map<string, number>();
  readonly #backedOffUntil = new Map<string, number>();
  readonly #scaleUps = new Map<string, ScaleUp>();
  readonly #wrongSizes = new Map<string, WrongSize>();
  #states = new Map<string, GroupState>();

  constructor(order: RegistryOrder) {
    this.#order = order;
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

  /** A second increase takes the clock of the first with it. */
  scaledUp(id: string, delta: number, now: number): void {
    const increase = (this.#scaleUps.get(id)?.increase ?? 0) + delta;
    if (increase <= 0) return void this.#scaleUps.delete(id);
    const expectedBy =
      delta > 0 ? now + this.#order.provisionMs : (this.#scaleUps.get(id)?.expectedBy ?? now);
    this.#scaleUps.set(id, { increase, expectedBy });
  }

  /** Throws what ends the loop: the target of any group, or instances that are not kept, cannot be read. */
  async update(nodes: readonly NodeObject[], now: number): Promise<void> {
    const { provider, groups: own } = this.#order;
    const groups = await provider.groups();
    const targets = new Map<string, number>();
    for (const { id } of groups) targets.set(id, await provider.target(id));
    for (const id of own) if (this.#isScalingUp(id)) this.cache.forget(id);
    const instances = await this.cache.all(groups, now);
    const before = this.#states;
    const members = await this.#membersOf(nodes);
    const missing = await this.#missing(nodes, instances, now);
    this.#states = new Map();
    for (const group of groups.filter(({ id }) => own.includes(id))) {
      const registered = members.get(group.id) ?? [];
      const staying = registered.filter((node) => !isLeaving(node));
      const unregistered = missing.get(group.id) ?? [];
      const isLong = (id: string) => this.#isLong(id, now);
      this.#states.set(group.id, {
        ...group,
        target: targets.get(group.id) ?? 0,
        instances: instances.get(group.id) ?? [],
        registered,
        ready: staying.filter((node) => readiness(node) === 'True'),
        notStarted: staying.filter((node) => readiness(node) !== 'True'),
        unregistered: unregistered.filter((id) => !isLong(id)),
        longUnregistered: unregistered.filter(isLong),
      });
      await provider.readOptions(group.id);
    }
    await this.#judgeScaleUps(now);
    for (const state of this.states) this.#judgeErrors(state, before.get(state.id), now);
    for (const state of this.states) this.#judgeSize(state, now);
  }

  /** After something was deleted that had failed. */
  async recalculate(): Promise<void> {
    for (const state of this.states) state.target = await this.#order.provider.target(state.id);
  }

  upcoming({ target, ready, longUnregistered }: GroupState): number {
    return Math.max(0, target - ready.length - longUnregistered.length);
  }

  /** By how much a group is larger than what is there, where that has not changed for long. */
  surplus(now: number): readonly { readonly id: string; readonly count: number }[] {
    return [...this.#wrongSizes]
      .filter(([, { since }]) => now - since > this.#order.provisionMs)
      .map(([id, { current, expected }]) => ({ id, count: expected - current }))
      .filter(({ count }) => count > 0);
  }

  async #membersOf(nodes: readonly NodeObject[]): Promise<ReadonlyMap<string, NodeObject[]>> {
    const members = new Map<string, NodeObject[]>();
    for (const node of nodes) {
      const group = await this.#groupOf(asAsked(node));
      if (group === undefined) continue;
      members.set(group.id, [...(members.get(group.id) ?? []), node]);
    }
    return members;
  }

  /** One that cannot be asked for is left out of this loop. */
  async #groupOf(node: AskedNode): Promise<NodeGroup | undefined> {
    const { provider } = this.#order;
    try {
      return await provider.groupOf(node);
    } catch (error) {
      if (!isRpcError(error)) throw error;
      provider.trouble('NodeGroupForNode', error);
      return undefined;
    }
  }

  /** Instances without a Node by the group that the provider says an invented Node is of. */
  async #missing(
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
      const group = await this.#groupOf(fakeNode(id) as AskedNode);
      if (group !== undefined) missing.set(group.id, [...(missing.get(group.id) ?? []), id]);
    }
    return missing;
  }

  #isLong(id: string, now: number): boolean {
    return now - (this.#unregisteredSince.get(id) ?? now) > this.#order.provisionMs;
  }

  #isScalingUp(id: string): boolean {
    return this.#scaleUps.has(id) && this.#hasUpcoming(id);
  }

  #hasUpcoming(id: string): boolean {
    const state = this.#states.get(id);
    if (state === undefined) return false;
    return state.target > state.registered.length - state.notStarted.length;
  }

  /** A target that is reached is a success, whatever was reached. 1.36 and later take back what timed out. */
  async #judgeScaleUps(now: number): Promise<void> {
    const { generation, onUndo } = this.#order;
    for (const [id, { increase, expectedBy }] of this.#scaleUps) {
      const state = this.#states.get(id);
      if (state === undefined || !this.#hasUpcoming(id)) {
        this.#scaleUps.delete(id);
        // Not in the newest releases, which remember it longer.
        if (generation === 'a0' || generation === 'a') this.#backedOffUntil.delete(id);
        continue;
      }
      if (expectedBy >= now) continue;
      this.backOff(id, now);
      this.#scaleUps.delete(id);
      if (generation === 'c') await onUndo(state, increase);
    }
  }

  /** Only what fails for the first time, and only while the group is growing, backs it off. */
  #judgeErrors(state: GroupState, before: GroupState | undefined, now: number): void {
    const known = new Set(failedOf(before?.instances ?? []).map(({ id }) => id));
    const unseen = failedOf(state.instances).filter(({ id }) => !known.has(id));
    if (unseen.length === 0 || !this.#isScalingUp(state.id)) return;
    this.scaledUp(state.id, -unseen.length, now);
    this.backOff(state.id, now);
  }

  #judgeSize({ id, target, ...state }: GroupState, now: number): void {
    const current = state.registered.length;
    const missing = state.unregistered.length + state.longUnregistered.length;
    const known = this.#wrongSizes.get(id);
    this.#wrongSizes.delete(id);
    // Of a group without anything it has no figures at all.
    if (current + missing === 0 || (current <= target && current >= target - missing)) return;
    const isSame = known?.current === current && known.expected === target;
    this.#wrongSizes.set(id, isSame ? known : { current, expected: target, since: now });
  }
}

export function failedOf(instances: readonly RpcResponse[]): readonly RpcResponse[] {
  return instances.filter(
    ({ status }) =>
      status.instanceState === 'instanceCreating' && Boolean(status.errorInfo?.errorCode),
  );
}

export function isLeaving({ spec }: NodeObject): boolean {
  return spec.taints?.some(({ key }) => key === TO_BE_DELETED) === true;
}

export function isRpcError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'number';
}

export function asAsked({ metadata, spec }: NodeObject): AskedNode {
  const { name, labels = {}, annotations = {} } = metadata;
  return { name, providerID: spec.providerID ?? '', labels, annotations };
}
