// SPDX-License-Identifier: Apache-2.0
// The Cluster Autoscaler's loop, as far as a provider notices it: the same calls in the same order, decisions of the
// same kind, on the Nodes and pods that the API server really has. Minutes are seconds here.
import { performance } from 'node:perf_hooks';
import { type ServiceError, status as Status } from '@grpc/grpc-js';
import type { Answer, Generation, RpcClient } from '../../../interop/client.ts';
import { fakeNode } from '../../../interop/expectations.ts';
import { type Api, waitUntil } from '../../controlplane/index.ts';
import { WaitingIsNoUse } from '../../controlplane/wait-until.ts';
import { type NodeObject, nodes, readiness } from '../kube-objects.ts';
import { type Group, lookAt } from './group-look.ts';
import {
  demandOf,
  isPending,
  mayGo,
  nodesFor,
  pods,
  putInto,
  roomOf,
  type WaitingPod,
} from './pods.ts';

export interface AutoscalerOrder {
  readonly api: Api;
  readonly client: RpcClient;
  readonly generation: Generation;
  /** The groups it cares for, the one it likes best first. */
  readonly groups: readonly string[];
  /** How long an instance may be without a Node. */
  readonly provisionMs?: number;
}

export interface Decision {
  readonly loop: number;
  readonly what: 'grow' | 'shrink' | 'undo' | 'delete-unregistered' | 'delete-failed';
  readonly group: string;
  readonly count: number;
  /** Target of the group before and after. */
  readonly targets: readonly [number, number];
  readonly errors?: readonly Answer[];
}

const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler';
const UNNEEDED_MS = 2_000;

export class ScriptedAutoscaler {
  readonly decisions: Decision[] = [];
  readonly #order: AutoscalerOrder;
  readonly #unregisteredSince = new Map<string, number>();
  readonly #emptySince = new Map<string, number>();
  readonly #backedOff = new Set<string>();
  readonly #grownBy = new Map<string, number>();
  #loops = 0;
  /** Loops that ended because the provider did not answer. */
  failedLoops = 0;

  constructor(order: AutoscalerOrder) {
    this.#order = order;
  }

  async startUp(): Promise<void> {
    await this.#order.client.call('GPULabel');
    await this.#order.client.call('GetAvailableGPUTypes');
  }

  /** Loops until that is so; a provider that is not there ends a loop, as it does for the real one. */
  async until(look: () => boolean | Promise<boolean>, limitMs = 100_000): Promise<void> {
    await waitUntil(
      'what the autoscaler works for',
      async () => {
        try {
          if (await look()) return true;
          await this.loop();
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

  async loop(): Promise<readonly Group[]> {
    this.#loops += 1;
    try {
      const groups = await this.#observe();
      await this.#act(groups);
      return groups;
    } catch (error) {
      if ((error as ServiceError).code !== Status.UNAVAILABLE) throw error;
      this.failedLoops += 1;
      return [];
    }
  }

  async #act(groups: readonly Group[]): Promise<void> {
    if (await this.#deleteFailed(groups)) return;
    if (await this.#deleteUnregistered(groups)) return;
    const all = await pods(this.#order.api);
    const waiting = all.filter(
      (pod) => isPending(pod) && groups.some(({ template }) => mayGo(pod, template.labels)),
    );
    if (waiting.length > 0) await this.#grow(groups, waiting, all);
    else await this.#shrink(groups, all);
  }

  async #observe(): Promise<readonly Group[]> {
    const { api, client, groups } = this.#order;
    await client.call('Refresh');
    const { nodeGroups } = await client.call('NodeGroups');
    const known = new Set<string>(nodeGroups.map((group: Answer) => group['id']));
    const members = new Map<string, NodeObject[]>();
    for (const node of await nodes(api)) {
      const { nodeGroup } = await client.call('NodeGroupForNode', { node: asAsked(node) });
      if (nodeGroup.id === '') continue;
      // The real one dereferences nothing here and dies.
      if (!known.has(nodeGroup.id)) throw new Error(`group ${nodeGroup.id} is not in NodeGroups`);
      members.set(nodeGroup.id, [...(members.get(nodeGroup.id) ?? []), node]);
    }
    const seen: Group[] = [];
    for (const id of groups) {
      const group = nodeGroups.find((one: Answer) => one['id'] === id);
      seen.push(await lookAt(this.#order, group, members.get(id) ?? []));
    }
    return seen;
  }

  async #deleteFailed(groups: readonly Group[]): Promise<boolean> {
    let isDone = false;
    for (const group of groups) {
      const failed = group.instances.filter(
        ({ status }) =>
          status.instanceState === 'instanceCreating' && Boolean(status.errorInfo?.errorCode),
      );
      if (failed.length === 0) continue;
      this.#backedOff.add(group.id);
      const ids = failed.map(({ id }) => id as string);
      const targets = await this.#deleteFakes(group, ids, 'create-error');
      const errors = failed.map(({ status }) => status.errorInfo);
      this.#decide({ what: 'delete-failed', group: group.id, count: ids.length, targets, errors });
      isDone = true;
    }
    return isDone;
  }

  async #deleteUnregistered(groups: readonly Group[]): Promise<boolean> {
    const { provisionMs = 600_000, generation } = this.#order;
    let isDone = false;
    for (const group of groups) {
      const late = this.#unregistered(group).filter(
        (id) => performance.now() - (this.#unregisteredSince.get(id) ?? 0) > provisionMs,
      );
      const ids = late.slice(0, Math.max(0, group.target - group.min));
      if (ids.length === 0) continue;
      this.#backedOff.add(group.id);
      if (generation === 'c') await this.#undoIncrease(group);
      const targets = await this.#deleteFakes(group, ids, 'unregistered');
      this.#decide({ what: 'delete-unregistered', group: group.id, count: ids.length, targets });
      isDone = true;
    }
    return isDone;
  }

  /** 1.36 and later take a scale-up back that timed out, whatever became of it. */
  async #undoIncrease({ id, target }: Group): Promise<void> {
    const count = this.#grownBy.get(id) ?? 0;
    if (count === 0) return;
    this.#grownBy.delete(id);
    await this.#order.client.call('NodeGroupDecreaseTargetSize', { id, delta: -count });
    const targets = [target, await this.target(id)] as const;
    this.#decide({ what: 'undo', group: id, count, targets });
  }

  #unregistered({ instances, nodes: members }: Group): readonly string[] {
    const registered = new Set(members.map(({ spec }) => spec.providerID));
    const ids = instances
      .filter(({ status }) => status.instanceState !== 'instanceDeleting')
      .filter(({ status }) => !status.errorInfo?.errorCode)
      .map(({ id }) => id as string)
      .filter((id) => !registered.has(id));
    for (const id of ids) {
      if (!this.#unregisteredSince.has(id)) this.#unregisteredSince.set(id, performance.now());
    }
    return ids;
  }

  async #deleteFakes(
    { id }: Group,
    ids: readonly string[],
    reason: string,
  ): Promise<readonly [number, number]> {
    const { client } = this.#order;
    const fakes = ids.map((one) => fakeNode(one, reason));
    for (const node of fakes) {
      const { nodeGroup } = await client.call('NodeGroupForNode', { node });
      if (nodeGroup.id !== id) throw new Error(`a fake node is of group "${nodeGroup.id}"`);
    }
    const before = await this.target(id);
    await client.call('NodeGroupDeleteNodes', { id, nodes: fakes });
    return [before, await this.target(id)];
  }

  async #grow(
    groups: readonly Group[],
    waiting: readonly WaitingPod[],
    all: readonly WaitingPod[],
  ): Promise<void> {
    const rooms = groups.flatMap((group) => roomsOf(group, all));
    const left = waiting.filter((pod) => !putInto(rooms, pod));
    for (const { id, max, target, template } of groups) {
      const count = Math.min(nodesFor(left, template), max - target);
      if (this.#backedOff.has(id) || count <= 0) continue;
      await this.#order.client.call('NodeGroupIncreaseSize', { id, delta: count });
      this.#grownBy.set(id, count);
      const targets = [target, await this.target(id)] as const;
      this.#decide({ what: 'grow', group: id, count, targets });
      return;
    }
  }

  async #shrink(groups: readonly Group[], all: readonly WaitingPod[]): Promise<void> {
    for (const group of groups) {
      const idle = group.nodes.filter((node) => this.#isUnneeded(node, all));
      const most = Math.max(0, group.target - group.min);
      const leaving = idle.slice(0, most);
      if (leaving.length === 0) continue;
      // One call each, at the same time: there is no batching interval by default.
      await Promise.all(leaving.map((node) => this.#remove(group, node)));
      const targets = [group.target, await this.target(group.id)] as const;
      this.#decide({ what: 'shrink', group: group.id, count: leaving.length, targets });
    }
  }

  #isUnneeded(node: NodeObject, all: readonly WaitingPod[]): boolean {
    const { name } = node.metadata;
    const isBusy = all.some(({ spec }) => spec.nodeName === name);
    if (isBusy || readiness(node) !== 'True' || isLeaving(node)) {
      this.#emptySince.delete(name);
      return false;
    }
    const since = this.#emptySince.get(name) ?? performance.now();
    this.#emptySince.set(name, since);
    return performance.now() - since > UNNEEDED_MS;
  }

  async #remove({ id }: Group, node: NodeObject): Promise<void> {
    const { api, client } = this.#order;
    const taints = [
      ...(node.spec.taints ?? []),
      { key: TO_BE_DELETED, value: String(Math.floor(Date.now() / 1_000)), effect: 'NoSchedule' },
    ];
    await api.patch(`/api/v1/nodes/${node.metadata.name}`, {
      spec: { taints, unschedulable: true },
    });
    await this.#drain(node);
    const { nodeGroup } = await client.call('NodeGroupForNode', { node: asAsked(node) });
    if (nodeGroup.id !== id) throw new Error(`${node.metadata.name} is of "${nodeGroup.id}" now`);
    await client.call('NodeGroupDeleteNodes', { id, nodes: [asAsked(node)] });
  }

  /** What the scheduler put there in the last moment goes elsewhere. */
  async #drain({ metadata }: NodeObject): Promise<void> {
    const { api } = this.#order;
    const there = (await pods(api)).filter(({ spec }) => spec.nodeName === metadata.name);
    for (const pod of there) {
      const { name, namespace } = pod.metadata;
      await api.create(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace },
      });
    }
  }

  async target(id: string): Promise<number> {
    return (await this.#order.client.call('NodeGroupTargetSize', { id }))['targetSize'];
  }

  #decide(decision: Omit<Decision, 'loop'>): void {
    this.decisions.push({ loop: this.#loops, ...decision });
  }
}

function isLeaving({ spec }: NodeObject): boolean {
  return spec.taints?.some(({ key }) => key === TO_BE_DELETED) === true;
}

/** Members as they are now, and those that are to come as the template says. */
function roomsOf({ nodes: members, target, template }: Group, all: readonly WaitingPod[]) {
  const staying = members.filter((node) => !isLeaving(node));
  const upcoming = Math.max(0, target - staying.length);
  const rooms = staying.map((node) => {
    const room = roomOf(node.status.allocatable ?? {}, node.metadata.labels);
    for (const pod of all.filter(({ spec }) => spec.nodeName === node.metadata.name)) {
      const { cpuMilli, memoryBytes } = demandOf(pod);
      room.cpuMilli -= cpuMilli;
      room.memoryBytes -= memoryBytes;
    }
    return room;
  });
  return [...rooms, ...Array.from({ length: upcoming }, () => ({ ...template }))];
}

/** All that the protocol tells of a Node. */
function asAsked({ metadata, spec }: NodeObject): object {
  const { name, labels = {}, annotations = {} } = metadata;
  return { name, providerID: spec.providerID ?? '', labels, annotations };
}
