// SPDX-License-Identifier: Apache-2.0
// The fields of Nodes and pods that the suites read.
import type { Api, ApiObject } from '../controlplane/index.ts';

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
}

export interface NodeObject extends ApiObject {
  readonly spec: {
    readonly providerID?: string;
    readonly unschedulable?: boolean;
    readonly taints?: readonly { key: string; value?: string; effect: string }[];
  };
  readonly status: {
    readonly capacity: Readonly<Record<string, string>>;
    readonly allocatable: Readonly<Record<string, string>>;
    readonly conditions: readonly Condition[];
    readonly addresses: readonly { type: string; address: string }[];
    readonly nodeInfo: {
      readonly systemUUID: string;
      readonly kubeletVersion: string;
      readonly bootID: string;
    };
  };
}

export interface PodObject extends ApiObject {
  readonly spec: { readonly nodeName?: string };
  readonly status: { readonly phase: string; readonly conditions?: readonly Condition[] };
}

function findConditionStatus(
  conditions: readonly Condition[] | undefined,
  type: string,
): string | undefined {
  return conditions?.find((each) => each.type === type)?.status;
}

export function readReadiness(object: NodeObject | PodObject): string | undefined {
  return findConditionStatus(object.status.conditions, 'Ready');
}

export function listNodes(api: Api): Promise<readonly NodeObject[]> {
  return api.list<NodeObject>('/api/v1/nodes');
}

export async function listNodesOfPool(api: Api, pool: string): Promise<readonly NodeObject[]> {
  return (await listNodes(api)).filter(
    ({ metadata }) => metadata.labels?.['autoscaler.proxmox/group'] === pool,
  );
}

/** Undefined while it does not exist. */
export async function findNode(api: Api, name: string): Promise<NodeObject | undefined> {
  return (await listNodes(api)).find(({ metadata }) => metadata.name === name);
}

export async function findPod(api: Api, name: string): Promise<PodObject | undefined> {
  const pods = await api.list<PodObject>('/api/v1/namespaces/default/pods');
  return pods.find(({ metadata }) => metadata.name === name);
}
