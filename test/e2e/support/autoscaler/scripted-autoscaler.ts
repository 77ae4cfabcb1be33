// SPDX-License-Identifier: Apache-2.0
// The Cluster Autoscaler's loop, as far as a provider notices it: the same calls in the same order, decisions on the same
// grounds, on the Nodes and pods that the API server really has. Minutes are seconds here.
import { performance } from 'node:perf_hooks';
import { type ServiceError, status as Status } from '@grpc/grpc-js';
import type { Generation, RpcClient, RpcResponse } from '../../../interop/client.ts';
import { fakeNode } from '../../../interop/expectations.ts';
import { type Api, waitUntil } from '../../controlplane/index.ts';
import { WaitingIsNoUse } from '../../controlplane/wait-until.ts';
import { type NodeObject, nodes, readiness } from '../kube-objects.ts';
import { type Place, placeOf, placesToCome, putAll } from './places.ts';
import { isPending, nodesFor, pods, type Room, type WaitingPod } from './pods.ts';
import { type AskedNode, ProviderClient } from './provider-client.ts';
import { asAsked, failedOf, type GroupState, isRpcError, Registry } from './registry.ts';
import { type Removal, ScaleDown } from './scale-down.ts';

export interface AutoscalerOrder {
  readonly api: Api;
  readonly client: RpcClient;
  readonly generation: Generation;
  /** The groups it cares for, the one it likes best first. */
  readonly groups: readonly string[];
  /** How long an instance may be without a Node. */
  readonly provisionMs: number;
  readonly scanMs: number;
}

export interface Decision {
  readonly loop: number;
  readonly what:
    | 'grow'
    | 'grow-refused'
    | 'shrink'
    | 'shrink-refused'
    | 'undo'
    | 'fix-size'
    | 'delete-unregistered'
    | 'delete-failed';
  readonly group: string;
  readonly count: number;
  /** Target of the group before and after. */
  readonly targets?: readonly [number, number];
  readonly errors?: readonly RpcResponse[];
}

const DELAY_AFTER_ADD_MS = 2_000;
/** Of real time: more of them may be on their way. */
const YOUNG_POD_MS = 2_000;
const OK_UNREADY = 3;
const MOST_UNREADY = 0.45;
const PASSING: readonly number[] = [Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED];

export class ScriptedAutoscaler {
  readonly decisions: Decision[] = [];
  readonly removals: Removal[] = [];
  readonly #order: AutoscalerOrder;
  readonly #provider: ProviderClient;
  readonly #registry: Registry;
  readonly #scaleDown: ScaleDown;
  readonly #templates = new Map<string, Room>();
  #loops = 0;
  #loopedAt = Number.NEGATIVE_INFINITY;
  #grownAt = Number.NEGATIVE_INFINITY;
  /** Loops that ended because the provider did not answer. */
  failedLoops = 0;

  constructor(order: AutoscalerOrder) {
    const { api, generation } = order;
    this.#order = order;
    this.#provider = new ProviderClient(order);
    const provider = this.#provider;
    this.#registry = new Registry({
      ...order,
      provider,
      onUndo: (group, count) => this.#undo(group, count),
    });
    this.#scaleDown = new ScaleDown({
      api,
      provider,
      generation,
      onRemoval: (removal) => this.#removed(removal),
    });
  }

  /** What it logged and went on from. */
  get troubles(): readonly string[] {
    return this.#provider.troubles;
  }

  isBackedOff(group: string): boolean {
    return this.#registry.isBackedOff(group, performance.now());
  }

  startUp(): Promise<void> {
    return this.#provider.startUp();
  }

  /** Loops until that is so; a provider that is not there ends a loop, as it does for the real one. */
  async until(look: () => boolean | Promise<boolean>, limitMs = 100_000): Promise<void> {
    await waitUntil(
      'what the autoscaler works for',
      async () => {
        try {
          if (await look()) return true;
          if (performance.now() - this.#loopedAt > this.#order.scanMs) await this.loop();
          return false;
        } catch (error) {
          // What goes wrong in one loop is not made good by the next.
          const decided = JSON.stringify(this.decisions);
          throw new WaitingIsNoUse(`${String(error)}; decided: ${decided}`, { cause: error });
        }
      },
      limitMs,
    );
  }

  async loop(): Promise<readonly GroupState[]> {
    this.#loops += 1;
    this.#loopedAt = performance.now();
    try {
      await this.#runOnce(this.#loopedAt);
      return this.#registry.states;
    } catch (error) {
      if (!isRpcError(error) || !PASSING.includes((error as ServiceError).code)) throw error;
      this.failedLoops += 1;
      return [];
    }
  }

  async target(id: string): Promise<number> {
    return this.#provider.target(id);
  }

  async #runOnce(now: number): Promise<void> {
    const { api, generation } = this.#order;
    const all = await nodes(api);
    await this.#provider.refresh();
    await this.#readTemplates(all);
    await this.#registry.update(all, now);
    const isOld = generation === 'a0' || generation === 'a';
    if ((await this.#removeUnregistered()) && isOld) return;
    if (!isHealthy(all)) return;
    if (await this.#removeFailed()) {
      if (isOld) return;
      await this.#registry.recalculate();
    }
    if (await this.#fixSizes(now)) return;
    await this.#scale(await pods(api), now);
  }

  /** Of every group; the real one would copy a Node where there is one for a minute. */
  async #readTemplates(all: readonly NodeObject[]): Promise<void> {
    for (const node of all.filter((one) => readiness(one) === 'True')) {
      await this.#provider.groupOf(asAsked(node)).catch((error: unknown) => {
        if (!isRpcError(error)) throw error;
        this.#provider.trouble('NodeGroupForNode', error);
      });
    }
    for (const { id } of await this.#provider.groups()) {
      if (!this.#order.groups.includes(id)) continue;
      this.#templates.set(id, await this.#provider.template(id));
    }
  }

  async #removeUnregistered(): Promise<boolean> {
    let isDone = false;
    for (const group of this.#registry.states) {
      const most = Math.max(0, (await this.target(group.id)) - group.min);
      const ids = group.longUnregistered.slice(0, most);
      if (ids.length === 0) continue;
      const targets = await this.#deleteFakes(group.id, ids, 'unregistered');
      if (targets === undefined) return isDone;
      this.#decide({ what: 'delete-unregistered', group: group.id, count: ids.length, targets });
      isDone = true;
    }
    return isDone;
  }

  async #removeFailed(): Promise<boolean> {
    let isDone = false;
    for (const group of this.#registry.states) {
      const failed = failedOf(group.instances);
      if (failed.length === 0) continue;
      const ids = failed.map(({ id }) => id as string);
      const targets = await this.#deleteFakes(group.id, ids, 'create-error');
      if (targets === undefined) continue;
      const errors = failed.map(({ status }) => status.errorInfo);
      this.#decide({ what: 'delete-failed', group: group.id, count: ids.length, targets, errors });
      isDone = true;
    }
    return isDone;
  }

  /** Undefined when it was refused: tried again in the next loop. */
  async #deleteFakes(
    id: string,
    ids: readonly string[],
    reason: string,
  ): Promise<readonly [number, number] | undefined> {
    const fakes = ids.map((one) => fakeNode(one, reason) as AskedNode);
    for (const fake of fakes) {
      // Without an answer the dead machine would never be cleaned up.
      const group = await this.#provider.groupOf(fake);
      if (group?.id !== id) throw new Error(`a fake node is of group "${group?.id}"`);
    }
    const before = await this.target(id);
    try {
      await this.#provider.deleteNodes(id, fakes);
    } catch (error) {
      if (!isRpcError(error)) throw error;
      this.#provider.trouble('NodeGroupDeleteNodes', error);
      return undefined;
    } finally {
      this.#registry.cache.forget(id);
    }
    return [before, await this.target(id)];
  }

  async #undo({ id, target }: GroupState, count: number): Promise<void> {
    await this.#provider.decrease(id, -count);
    this.#decide({ what: 'undo', group: id, count, targets: [target, await this.target(id)] });
  }

  async #fixSizes(now: number): Promise<boolean> {
    const surplus = this.#registry.surplus(now);
    for (const { id, count } of surplus) {
      const before = await this.target(id);
      await this.#provider.decrease(id, -count);
      const targets = [before, await this.target(id)] as const;
      this.#decide({ what: 'fix-size', group: id, count, targets });
    }
    return surplus.length > 0;
  }

  async #scale(all: readonly WaitingPod[], now: number): Promise<void> {
    const groups = this.#registry.states;
    const places = groups.flatMap((group) => this.#placesOf(group, all));
    const templates = groups.map(({ id }) => this.#template(id));
    const left = putAll(all.filter(isPending), places).filter(
      (pod) => nodesFor([pod], templates) > 0,
    );
    if (left.length > 0) {
      if (left.every(isYoung)) return;
      await this.#grow(left, now);
    }
    if (now - this.#grownAt < DELAY_AFTER_ADD_MS) return;
    this.#scaleDown.run(groups, places, all);
  }

  #placesOf(group: GroupState, all: readonly WaitingPod[]): readonly Place[] {
    return [
      ...group.ready.map((node) => placeOf(node, all)),
      ...placesToCome(this.#template(group.id), this.#registry.upcoming(group)),
    ];
  }

  #template(id: string): Room {
    const template = this.#templates.get(id);
    if (template === undefined) throw new Error(`no template of ${id}`);
    return template;
  }

  /** One group per loop. */
  async #grow(left: readonly WaitingPod[], now: number): Promise<void> {
    const states = new Map(this.#registry.states.map((group) => [group.id, group]));
    for (const id of this.#order.groups) {
      const group = states.get(id);
      if (group === undefined || this.#registry.isBackedOff(id, now)) continue;
      const { target, max } = group;
      const count = Math.min(nodesFor(left, [this.#template(id)]), max - target);
      if (count <= 0) continue;
      this.#grownAt = now;
      try {
        await this.#provider.increase(id, count);
      } catch (error) {
        if (!isRpcError(error)) throw error;
        this.#provider.trouble('NodeGroupIncreaseSize', error);
        this.#registry.backOff(id, now);
        this.#decide({ what: 'grow-refused', group: id, count });
        return;
      }
      this.#registry.scaledUp(id, count, now);
      const targets = [target, await this.target(id)] as const;
      this.#decide({ what: 'grow', group: id, count, targets });
      return;
    }
  }

  #removed(removal: Removal): void {
    this.removals.push(removal);
    this.#registry.cache.forget(removal.group);
    const what = removal.askedAt === undefined ? 'shrink-refused' : 'shrink';
    this.#decide({ what, group: removal.group, count: 1 });
  }

  #decide(decision: Omit<Decision, 'loop'>): void {
    this.decisions.push({ loop: this.#loops, ...decision });
  }
}

/** With too many nodes that are not Ready it does nothing at all. */
function isHealthy(all: readonly NodeObject[]): boolean {
  const unready = all.filter((node) => readiness(node) === 'Unknown').length;
  return unready <= OK_UNREADY || unready <= MOST_UNREADY * all.length;
}

function isYoung({ metadata }: WaitingPod): boolean {
  return Date.now() - Date.parse(metadata.creationTimestamp) < YOUNG_POD_MS;
}
