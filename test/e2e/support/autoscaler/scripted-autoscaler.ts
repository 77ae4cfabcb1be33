// SPDX-License-Identifier: Apache-2.0
// The loop of the Cluster Autoscaler as a provider observes it: the same calls in the same order and the same decisions,
// on the Nodes and pods of a real API server. Minutes of the real one are seconds here.
import { performance } from 'node:perf_hooks';
import { type ServiceError, status as Status } from '@grpc/grpc-js';
import type { Generation, RpcClient, RpcResponse } from '../../../interop/client.ts';
import { fakeNode } from '../../../interop/expectations.ts';
import { type Api, waitUntil } from '../../controlplane/index.ts';
import { PermanentFailure } from '../../controlplane/wait-until.ts';
import { listNodes, type NodeObject, readReadiness } from '../kube-objects.ts';
import {
  type AutoscalerPod,
  countNodesNeeded,
  isPending,
  listPods,
  type NodeResources,
} from './pods.ts';
import { type GrpcNode, ProviderClient } from './provider-client.ts';
import { filterFailed, type GroupState, isRpcError, Registry, toGrpcNode } from './registry.ts';
import { type Removal, ScaleDown } from './scale-down.ts';
import {
  placePods,
  type SimulatedNode,
  simulateNode,
  simulateUpcomingNodes,
} from './simulated-nodes.ts';

export interface AutoscalerOptions {
  readonly api: Api;
  readonly client: RpcClient;
  readonly generation: Generation;
  /** The groups it scales, by priority. */
  readonly groups: readonly string[];
  /** Maximum time of an instance without a Node. */
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
/** Younger pods are left for the next loop, because more may follow. */
const YOUNG_POD_MS = 2_000;
const OK_UNREADY_COUNT = 3;
const MAX_UNREADY_RATIO = 0.45;
const TRANSIENT_CODES: readonly number[] = [Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED];

export class ScriptedAutoscaler {
  readonly decisions: Decision[] = [];
  readonly removals: Removal[] = [];
  readonly #options: AutoscalerOptions;
  readonly #provider: ProviderClient;
  readonly #registry: Registry;
  readonly #scaleDown: ScaleDown;
  readonly #templates = new Map<string, NodeResources>();
  #loopCount = 0;
  #loopedAt = Number.NEGATIVE_INFINITY;
  #grownAt = Number.NEGATIVE_INFINITY;
  /** Loops that ended because the provider was unreachable. */
  failedLoops = 0;

  constructor(order: AutoscalerOptions) {
    const { api, generation } = order;
    this.#options = order;
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
      onRemoval: (removal) => this.#handleRemoval(removal),
    });
  }

  /** Errors that were logged without ending the loop. */
  get loggedErrors(): readonly string[] {
    return this.#provider.loggedErrors;
  }

  isBackedOff(group: string): boolean {
    return this.#registry.isBackedOff(group, performance.now());
  }

  startUp(): Promise<void> {
    return this.#provider.startUp();
  }

  /** Runs loops until the check holds. An unreachable provider ends a loop, as in the real one. The limit only ends a failed test. */
  async runUntil(check: () => boolean | Promise<boolean>, limitMs = 240_000): Promise<void> {
    await waitUntil(
      'the expected state of the autoscaler',
      async () => {
        try {
          if (await check()) return true;
          if (performance.now() - this.#loopedAt > this.#options.scanMs) await this.runLoop();
          return false;
        } catch (error) {
          // A failed loop is not retried.
          const decided = JSON.stringify(this.decisions);
          throw new PermanentFailure(`${String(error)}; decided: ${decided}`, { cause: error });
        }
      },
      limitMs,
    );
  }

  async runLoop(): Promise<readonly GroupState[]> {
    this.#loopCount += 1;
    this.#loopedAt = performance.now();
    try {
      await this.#runOnce(this.#loopedAt);
      return this.#registry.states;
    } catch (error) {
      if (!isRpcError(error) || !TRANSIENT_CODES.includes((error as ServiceError).code))
        throw error;
      this.failedLoops += 1;
      return [];
    }
  }

  async readTarget(id: string): Promise<number> {
    return this.#provider.readTarget(id);
  }

  async #runOnce(now: number): Promise<void> {
    const { api, generation } = this.#options;
    const all = await listNodes(api);
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
    await this.#scale(await listPods(api), now);
  }

  /** Reads the template of every group. The real one uses an existing Node for a minute where there is one. */
  async #readTemplates(all: readonly NodeObject[]): Promise<void> {
    for (const node of all.filter((one) => readReadiness(one) === 'True')) {
      await this.#provider.findGroup(toGrpcNode(node)).catch((error: unknown) => {
        if (!isRpcError(error)) throw error;
        this.#provider.logError('NodeGroupForNode', error);
      });
    }
    for (const { id } of await this.#provider.listGroups()) {
      if (!this.#options.groups.includes(id)) continue;
      this.#templates.set(id, await this.#provider.readTemplate(id));
    }
  }

  async #removeUnregistered(): Promise<boolean> {
    let isDone = false;
    for (const group of this.#registry.states) {
      const maxCount = Math.max(0, (await this.readTarget(group.id)) - group.min);
      const ids = group.longUnregistered.slice(0, maxCount);
      if (ids.length === 0) continue;
      const targets = await this.#deleteFakes(group.id, ids, 'unregistered');
      if (targets === undefined) return isDone;
      this.#recordDecision({
        what: 'delete-unregistered',
        group: group.id,
        count: ids.length,
        targets,
      });
      isDone = true;
    }
    return isDone;
  }

  async #removeFailed(): Promise<boolean> {
    let isDone = false;
    for (const group of this.#registry.states) {
      const failed = filterFailed(group.instances);
      if (failed.length === 0) continue;
      const ids = failed.map(({ id }) => id as string);
      const targets = await this.#deleteFakes(group.id, ids, 'create-error');
      if (targets === undefined) continue;
      const errors = failed.map(({ status }) => status.errorInfo);
      this.#recordDecision({
        what: 'delete-failed',
        group: group.id,
        count: ids.length,
        targets,
        errors,
      });
      isDone = true;
    }
    return isDone;
  }

  /** Undefined when it was refused; the next loop tries again. */
  async #deleteFakes(
    id: string,
    ids: readonly string[],
    reason: string,
  ): Promise<readonly [number, number] | undefined> {
    const fakes = ids.map((one) => fakeNode(one, reason) as GrpcNode);
    for (const fake of fakes) {
      // Without a group the failed machine would never be deleted.
      const group = await this.#provider.findGroup(fake);
      if (group?.id !== id)
        throw new Error(`a fake node is in group "${group?.id}", expected "${id}"`);
    }
    const before = await this.readTarget(id);
    try {
      await this.#provider.deleteNodes(id, fakes);
    } catch (error) {
      if (!isRpcError(error)) throw error;
      this.#provider.logError('NodeGroupDeleteNodes', error);
      return undefined;
    } finally {
      this.#registry.cache.invalidate(id);
    }
    return [before, await this.readTarget(id)];
  }

  async #undo({ id, target }: GroupState, count: number): Promise<void> {
    await this.#provider.decrease(id, -count);
    this.#recordDecision({
      what: 'undo',
      group: id,
      count,
      targets: [target, await this.readTarget(id)],
    });
  }

  async #fixSizes(now: number): Promise<boolean> {
    const surplus = this.#registry.listSurplus(now);
    for (const { id, count } of surplus) {
      const before = await this.readTarget(id);
      await this.#provider.decrease(id, -count);
      const targets = [before, await this.readTarget(id)] as const;
      this.#recordDecision({ what: 'fix-size', group: id, count, targets });
    }
    return surplus.length > 0;
  }

  async #scale(all: readonly AutoscalerPod[], now: number): Promise<void> {
    const groups = this.#registry.states;
    const nodes = groups.flatMap((group) => this.#simulateNodes(group, all));
    const templates = groups.map(({ id }) => this.#requireTemplate(id));
    const left = placePods(all.filter(isPending), nodes).filter(
      (pod) => countNodesNeeded([pod], templates) > 0,
    );
    if (left.length > 0) {
      if (left.every(isYoung)) return;
      await this.#grow(left, now);
    }
    if (now - this.#grownAt < DELAY_AFTER_ADD_MS) return;
    this.#scaleDown.run(groups, nodes, all);
  }

  #simulateNodes(group: GroupState, all: readonly AutoscalerPod[]): readonly SimulatedNode[] {
    return [
      ...group.ready.map((node) => simulateNode(node, all)),
      ...simulateUpcomingNodes(
        this.#requireTemplate(group.id),
        this.#registry.countUpcoming(group),
      ),
    ];
  }

  #requireTemplate(id: string): NodeResources {
    const template = this.#templates.get(id);
    if (template === undefined) throw new Error(`the template of ${id} was not read`);
    return template;
  }

  /** One group per loop. */
  async #grow(left: readonly AutoscalerPod[], now: number): Promise<void> {
    const states = new Map(this.#registry.states.map((group) => [group.id, group]));
    for (const id of this.#options.groups) {
      const group = states.get(id);
      if (group === undefined || this.#registry.isBackedOff(id, now)) continue;
      const { target, max } = group;
      const count = Math.min(countNodesNeeded(left, [this.#requireTemplate(id)]), max - target);
      if (count <= 0) continue;
      this.#grownAt = now;
      try {
        await this.#provider.increase(id, count);
      } catch (error) {
        if (!isRpcError(error)) throw error;
        this.#provider.logError('NodeGroupIncreaseSize', error);
        this.#registry.backOff(id, now);
        this.#recordDecision({ what: 'grow-refused', group: id, count });
        return;
      }
      this.#registry.recordScaleUp(id, count, now);
      const targets = [target, await this.readTarget(id)] as const;
      this.#recordDecision({ what: 'grow', group: id, count, targets });
      return;
    }
  }

  #handleRemoval(removal: Removal): void {
    this.removals.push(removal);
    this.#registry.cache.invalidate(removal.group);
    const what = removal.requestedAt === undefined ? 'shrink-refused' : 'shrink';
    this.#recordDecision({ what, group: removal.group, count: 1 });
  }

  #recordDecision(decision: Omit<Decision, 'loop'>): void {
    this.decisions.push({ loop: this.#loopCount, ...decision });
  }
}

/** With too many unready nodes the loop does nothing. */
function isHealthy(all: readonly NodeObject[]): boolean {
  const unready = all.filter((node) => readReadiness(node) === 'Unknown').length;
  return unready <= OK_UNREADY_COUNT || unready <= MAX_UNREADY_RATIO * all.length;
}

function isYoung({ metadata }: AutoscalerPod): boolean {
  return Date.now() - Date.parse(metadata.creationTimestamp) < YOUNG_POD_MS;
}
