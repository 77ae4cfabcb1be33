// SPDX-License-Identifier: Apache-2.0
// Pods as the autoscaler's simulation sees them: what they ask for, where they may go, and how many nodes that takes.
import { milliValue, parseQuantity, wholeValue } from '../../../../src/model/quantity.ts';
import type { Api } from '../../controlplane/index.ts';
import type { PodObject } from '../kube-objects.ts';

export interface WaitingPod extends PodObject {
  readonly metadata: PodObject['metadata'] & { readonly ownerReferences?: readonly object[] };
  readonly spec: PodObject['spec'] & {
    readonly nodeSelector?: Readonly<Record<string, string>>;
    readonly containers: readonly {
      readonly resources?: { readonly requests?: Readonly<Record<string, string>> };
    }[];
  };
}

export interface Room {
  readonly labels: Readonly<Record<string, string>>;
  cpuMilli: number;
  memoryBytes: number;
}

export function pods(api: Api): Promise<readonly WaitingPod[]> {
  return api.list<WaitingPod>('/api/v1/namespaces/default/pods');
}

/** The scheduler has tried and found no place. */
export function isPending({ spec, status }: WaitingPod): boolean {
  return (
    spec.nodeName === undefined &&
    status.conditions?.some(({ reason }) => reason === 'Unschedulable') === true
  );
}

export function roomOf(
  resources: Readonly<Record<string, string>>,
  labels: Room['labels'] = {},
): Room {
  const read = (name: string) => parseQuantity(resources[name] ?? '0');
  const [cpu, memory] = [read('cpu'), read('memory')];
  if (!cpu.ok || !memory.ok) throw new Error(`no resources: ${JSON.stringify(resources)}`);
  return {
    labels,
    cpuMilli: Number(milliValue(cpu.value)),
    memoryBytes: Number(wholeValue(memory.value)),
  };
}

export function demandOf({ spec }: WaitingPod): Omit<Room, 'labels'> {
  const sums = { cpuMilli: 0, memoryBytes: 0 };
  for (const { resources } of spec.containers) {
    const { cpuMilli, memoryBytes } = roomOf(resources?.requests ?? {});
    sums.cpuMilli += cpuMilli;
    sums.memoryBytes += memoryBytes;
  }
  return sums;
}

export function mayGo(pod: WaitingPod, labels: Room['labels']): boolean {
  return Object.entries(pod.spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value);
}

/** Puts a pod where it fits first; false when it fits nowhere. */
export function putInto(rooms: readonly Room[], pod: WaitingPod): boolean {
  const { cpuMilli, memoryBytes } = demandOf(pod);
  const room = rooms.find(
    (one) => mayGo(pod, one.labels) && one.cpuMilli >= cpuMilli && one.memoryBytes >= memoryBytes,
  );
  if (room === undefined) return false;
  room.cpuMilli -= cpuMilli;
  room.memoryBytes -= memoryBytes;
  return true;
}

/** How many nodes of these templates, the first that will do, hold those of the pods that may go there at all. */
export function nodesFor(waiting: readonly WaitingPod[], templates: readonly Room[]): number {
  const rooms: Room[] = [];
  for (const pod of waiting) {
    if (putInto(rooms, pod)) continue;
    const fresh = templates.map((one) => ({ ...one })).find((one) => putInto([one], pod));
    if (fresh !== undefined) rooms.push(fresh);
  }
  return rooms.length;
}
