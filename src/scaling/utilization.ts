// SPDX-License-Identifier: Apache-2.0
// The utilization of a node: requested share of its CPU or memory, whichever is higher; of its GPUs if it has any.

import type { PoolConfig } from '../config/types/index.ts';
import type { Node } from '../model/node.ts';
import { isDaemonSetPod, type Pod } from '../model/pod.ts';
import { isLeftOnNode } from './eviction-rules.ts';
import { isPlaceholder } from './headroom.ts';

export interface Utilization {
  readonly cpu: number;
  readonly memory: number;
  /** The share that is compared with the threshold. */
  readonly value: number;
  /** Pods that have to move; neither DaemonSet pods nor placeholders. */
  readonly pods: number;
}

export function utilizationOf(
  node: Node,
  pods: readonly Pod[],
  { gpu, scaleDown }: Pick<PoolConfig, 'gpu' | 'scaleDown'>,
): Utilization {
  const used = { cpu: 0, memory: 0, gpu: 0 };
  const ignored = { cpu: 0, memory: 0, gpu: 0 };
  let moving = 0;
  for (const pod of pods) {
    if (isPlaceholder(pod)) continue;
    const { cpuMilli, memoryBytes, extended } = pod.held;
    const sums = scaleDown.ignoreDaemonSets && isDaemonSetPod(pod) ? ignored : used;
    sums.cpu += cpuMilli;
    sums.memory += memoryBytes;
    sums.gpu += gpu === undefined ? 0 : (extended[gpu.resource] ?? 0);
    if (!isLeftOnNode(pod)) moving += 1;
  }
  const share = (amount: number, total: number): number => (total > 0 ? amount / total : 0);
  const { allocatable } = node;
  const cpu = share(used.cpu, allocatable.cpuMilli - ignored.cpu);
  const memory = share(used.memory, allocatable.memoryBytes - ignored.memory);
  const value =
    gpu === undefined
      ? Math.max(cpu, memory)
      : share(used.gpu, (allocatable.extended[gpu.resource] ?? 0) - ignored.gpu);
  return { cpu, memory, value, pods: moving };
}
