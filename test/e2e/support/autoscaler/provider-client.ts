// SPDX-License-Identifier: Apache-2.0
// The autoscaler's own client of the protocol, as far as its callers notice it: what it keeps and for how long, and what
// it makes of errors.
import type { ServiceError } from '@grpc/grpc-js';
import type { RpcResponse } from '../../../interop/client.ts';
import { checkOptions, defaultOptions } from '../../../interop/generation-options.ts';
import { type Room, roomOf } from './pods.ts';
import { type Caller, DEADLINE, templateOf } from './template-node.ts';

export interface NodeGroup {
  readonly id: string;
  readonly min: number;
  readonly max: number;
}

/** All that the protocol tells of a Node. */
export interface AskedNode {
  readonly name: string;
  readonly providerID: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** What the real one would not survive. */
export class Crash extends Error {}

export class ProviderClient {
  readonly #caller: Caller;
  /** Errors that it logs and goes on from. */
  readonly troubles: string[] = [];
  readonly #groupOf = new Map<string, NodeGroup>();
  #groups: readonly NodeGroup[] | undefined;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async startUp(): Promise<void> {
    await this.#call('GPULabel');
    await this.#call('GetAvailableGPUTypes');
  }

  /** Forgets first, whatever becomes of the call. */
  async refresh(): Promise<void> {
    this.#groupOf.clear();
    this.#groups = undefined;
    await this.#call('Refresh');
  }

  /** An error is not kept, and looks like a world without groups. */
  async groups(): Promise<readonly NodeGroup[]> {
    try {
      this.#groups ??= (await this.#call('NodeGroups'))['nodeGroups'].map(groupFrom);
      return this.#groups ?? [];
    } catch (error) {
      this.trouble('NodeGroups', error);
      return [];
    }
  }

  /** Undefined for who is of no group; that is not kept, and asked again by everybody who wants to know. */
  async groupOf(node: AskedNode): Promise<NodeGroup | undefined> {
    const key = `${node.name} ${node.providerID}`;
    const known = this.#groupOf.get(key);
    if (known !== undefined) return known;
    const { nodeGroup } = await this.#call('NodeGroupForNode', { node });
    if (nodeGroup.id === '') return undefined;
    const group = groupFrom(nodeGroup);
    this.#groupOf.set(key, group);
    // It looks the group up among all groups, and uses what is not there.
    const all = await this.groups();
    if (all.length > 0 && !all.some(({ id }) => id === group.id)) {
      throw new Crash(`node group ${group.id} is not in NodeGroups`);
    }
    return group;
  }

  async target(id: string): Promise<number> {
    return (await this.#call('NodeGroupTargetSize', { id }))['targetSize'];
  }

  async instances(id: string): Promise<readonly RpcResponse[]> {
    return (await this.#call('NodeGroupNodes', { id }))['instances'];
  }

  /** Of the options only what makes the real one crash matters here: the groups have none of their own. */
  async readOptions(id: string): Promise<void> {
    const { generation } = this.#caller;
    const answer = await this.#call('NodeGroupGetOptions', {
      id,
      defaults: defaultOptions(generation),
    });
    checkOptions(generation, answer['nodeGroupAutoscalingOptions']);
  }

  async template(id: string): Promise<Room> {
    const { labels, allocatable } = await templateOf(this.#caller, id);
    return roomOf(allocatable, labels);
  }

  async increase(id: string, delta: number): Promise<void> {
    await this.#call('NodeGroupIncreaseSize', { id, delta });
  }

  async decrease(id: string, delta: number): Promise<void> {
    await this.#call('NodeGroupDecreaseTargetSize', { id, delta });
  }

  async deleteNodes(id: string, nodes: readonly AskedNode[]): Promise<void> {
    await this.#call('NodeGroupDeleteNodes', { id, nodes });
  }

  trouble(what: string, error: unknown): void {
    this.troubles.push(`${what}: ${(error as ServiceError).details ?? String(error)}`);
  }

  #call(rpc: string, request: object = {}): Promise<RpcResponse> {
    return this.#caller.client.call(rpc, request, DEADLINE);
  }
}

function groupFrom({ id, minSize, maxSize }: RpcResponse): NodeGroup {
  return { id, min: minSize, max: maxSize };
}
