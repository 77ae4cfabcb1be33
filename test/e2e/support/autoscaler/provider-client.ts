// SPDX-License-Identifier: Apache-2.0
// The autoscaler's client of the provider protocol: what it caches and for how long, and how it handles errors.
import type { ServiceError } from '@grpc/grpc-js';
import type { RpcResponse } from '../../../interop/client.ts';
import { checkOptions, defaultOptions } from '../../../interop/generation-options.ts';
import { type NodeResources, parseResources } from './pods.ts';
import { type Caller, DEADLINE, readTemplateNode } from './template-node.ts';

export interface NodeGroup {
  readonly id: string;
  readonly min: number;
  readonly max: number;
}

/** A Node as the protocol transmits it. */
export interface GrpcNode {
  readonly name: string;
  readonly providerID: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A condition in which the real autoscaler crashes. */
export class AutoscalerCrash extends Error {}

export class ProviderClient {
  readonly #caller: Caller;
  /** Errors that the real one logs without ending its loop. */
  readonly loggedErrors: string[] = [];
  readonly #groupByNode = new Map<string, NodeGroup>();
  #groups: readonly NodeGroup[] | undefined;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async startUp(): Promise<void> {
    await this.#call('GPULabel');
    await this.#call('GetAvailableGPUTypes');
  }

  /** Clears the caches first, whether the call succeeds or not. */
  async refresh(): Promise<void> {
    this.#groupByNode.clear();
    this.#groups = undefined;
    await this.#call('Refresh');
  }

  /** An error is not cached and gives an empty list. */
  async listGroups(): Promise<readonly NodeGroup[]> {
    try {
      this.#groups ??= (await this.#call('NodeGroups'))['nodeGroups'].map(toNodeGroup);
      return this.#groups ?? [];
    } catch (error) {
      this.logError('NodeGroups', error);
      return [];
    }
  }

  /** Undefined for a node of no group; that is not cached, so it is requested again every time. */
  async findGroup(node: GrpcNode): Promise<NodeGroup | undefined> {
    const key = `${node.name} ${node.providerID}`;
    const known = this.#groupByNode.get(key);
    if (known !== undefined) return known;
    const { nodeGroup } = await this.#call('NodeGroupForNode', { node });
    if (nodeGroup.id === '') return undefined;
    const group = toNodeGroup(nodeGroup);
    this.#groupByNode.set(key, group);
    // The real one looks the group up in the list and dereferences it without a check.
    const all = await this.listGroups();
    if (all.length > 0 && !all.some(({ id }) => id === group.id)) {
      throw new AutoscalerCrash(`node group ${group.id} is not in NodeGroups`);
    }
    return group;
  }

  async readTarget(id: string): Promise<number> {
    return (await this.#call('NodeGroupTargetSize', { id }))['targetSize'];
  }

  async listInstances(id: string): Promise<readonly RpcResponse[]> {
    return (await this.#call('NodeGroupNodes', { id }))['instances'];
  }

  /** Only reads the options, which crashes the real one when they are malformed; the groups have no options. */
  async readOptions(id: string): Promise<void> {
    const { generation } = this.#caller;
    const answer = await this.#call('NodeGroupGetOptions', {
      id,
      defaults: defaultOptions(generation),
    });
    checkOptions(generation, answer['nodeGroupAutoscalingOptions']);
  }

  async readTemplate(id: string): Promise<NodeResources> {
    const { labels, allocatable } = await readTemplateNode(this.#caller, id);
    return parseResources(allocatable, labels);
  }

  async increase(id: string, delta: number): Promise<void> {
    await this.#call('NodeGroupIncreaseSize', { id, delta });
  }

  async decrease(id: string, delta: number): Promise<void> {
    await this.#call('NodeGroupDecreaseTargetSize', { id, delta });
  }

  async deleteNodes(id: string, nodes: readonly GrpcNode[]): Promise<void> {
    await this.#call('NodeGroupDeleteNodes', { id, nodes });
  }

  logError(what: string, error: unknown): void {
    this.loggedErrors.push(`${what}: ${(error as ServiceError).details ?? String(error)}`);
  }

  #call(rpc: string, request: object = {}): Promise<RpcResponse> {
    return this.#caller.client.call(rpc, request, DEADLINE);
  }
}

function toNodeGroup({ id, minSize, maxSize }: RpcResponse): NodeGroup {
  return { id, min: minSize, max: maxSize };
}
