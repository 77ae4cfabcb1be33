// SPDX-License-Identifier: Apache-2.0
// Where pods are and would be: Nodes at work with what is left of them, and those to come as the template says.
import type { NodeObject } from '../kube-objects.ts';
import { demandOf, putInto, type Room, roomOf, type WaitingPod } from './pods.ts';

export interface Place {
  /** Undefined for one that is to come. */
  readonly node: NodeObject | undefined;
  readonly whole: Room;
  /** What is left of it. */
  readonly room: Room;
}

export function placeOf(node: NodeObject, pods: readonly WaitingPod[]): Place {
  const whole = roomOf(node.status.allocatable ?? {}, node.metadata.labels);
  const room = { ...whole };
  for (const pod of podsOn(node, pods)) {
    const { cpuMilli, memoryBytes } = demandOf(pod);
    room.cpuMilli -= cpuMilli;
    room.memoryBytes -= memoryBytes;
  }
  return { node, whole, room };
}

export function placesToCome(template: Room, count: number): readonly Place[] {
  return Array.from({ length: count }, () => ({
    node: undefined,
    whole: template,
    room: { ...template },
  }));
}

/** Those that find no place; the others have theirs taken off. */
export function putAll(
  pods: readonly WaitingPod[],
  places: readonly Place[],
): readonly WaitingPod[] {
  const rooms = places.map(({ room }) => room);
  return pods.filter((pod) => !putInto(rooms, pod));
}

export function utilization({ whole, room }: Place): number {
  return Math.max(1 - room.cpuMilli / whole.cpuMilli, 1 - room.memoryBytes / whole.memoryBytes);
}

export function podsOn(node: NodeObject, pods: readonly WaitingPod[]): readonly WaitingPod[] {
  return pods.filter(({ spec }) => spec.nodeName === node.metadata.name);
}
