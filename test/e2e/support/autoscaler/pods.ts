// SPDX-License-Identifier: Apache-2.0
// Pods in the autoscaler's scheduling simulation: their requests, their node selectors, and the nodes they need.
import { milliValue, parseQuantity, wholeValue } from '../../../../src/model/quantity.ts';
import type { Api } from '../../controlplane/index.ts';
import type { PodObject } from '../kube-objects.ts';

export interface AutoscalerPod extends PodObject {
  readonly metadata: PodObject['metadata'] & { readonly ownerReferences?: readonly object[] };
  readonly spec: PodObject['spec'] & {
    readonly nodeSelector?: Readonly<Record<string, string>>;
    readonly containers: readonly {
      readonly resources?: { readonly requests?: Readonly<Record<string, string>> };
    }[];
  };
}

export interface NodeResources {
  readonly labels: Readonly<Record<string, string>>;
  cpuMilli: number;
  memoryBytes: number;
}

export function listPods(api: Api): Promise<readonly AutoscalerPod[]> {
  return api.list<AutoscalerPod>('/api/v1/namespaces/default/pods');
}

/** The scheduler has tried the pod and found no node. */
export function isPending({ spec, status }: AutoscalerPod): boolean {
  return (
    spec.nodeName === undefined &&
    status.conditions?.some(({ reason }) => reason === 'Unschedulable') === true
  );
}

export function parseResources(
  resources: Readonly<Record<string, string>>,
  labels: NodeResources['labels'] = {},
): NodeResources {
  const read = (name: string) => parseQuantity(resources[name] ?? '0');
  const [cpu, memory] = [read('cpu'), read('memory')];
  if (!cpu.ok || !memory.ok) throw new Error(`invalid resources: ${JSON.stringify(resources)}`);
  return {
    labels,
    cpuMilli: Number(milliValue(cpu.value)),
    memoryBytes: Number(wholeValue(memory.value)),
  };
}

export function sumRequests({ spec }: AutoscalerPod): Omit<NodeResources, 'labels'> {
  const sums = { cpuMilli: 0, memoryBytes: 0 };
  for (const { resources } of spec.containers) {
    const { cpuMilli, memoryBytes } = parseResources(resources?.requests ?? {});
    sums.cpuMilli += cpuMilli;
    sums.memoryBytes += memoryBytes;
  }
  return sums;
}

export function matchesNodeSelector(pod: AutoscalerPod, labels: NodeResources['labels']): boolean {
  return Object.entries(pod.spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value);
}

/** Places a pod on the first node where it fits; false when it fits nowhere. */
export function placePod(nodes: readonly NodeResources[], pod: AutoscalerPod): boolean {
  const { cpuMilli, memoryBytes } = sumRequests(pod);
  const node = nodes.find(
    (one) =>
      matchesNodeSelector(pod, one.labels) &&
      one.cpuMilli >= cpuMilli &&
      one.memoryBytes >= memoryBytes,
  );
  if (node === undefined) return false;
  node.cpuMilli -= cpuMilli;
  node.memoryBytes -= memoryBytes;
  return true;
}

/** Number of nodes needed for the pods that fit a template; each pod takes the first template that fits. */
export function countNodesNeeded(
  waiting: readonly AutoscalerPod[],
  templates: readonly NodeResources[],
): number {
  const nodes: NodeResources[] = [];
  for (const pod of waiting) {
    if (placePod(nodes, pod)) continue;
    const fresh = templates.map((one) => ({ ...one })).find((one) => placePod([one], pod));
    if (fresh !== undefined) nodes.push(fresh);
  }
  return nodes.length;
}
