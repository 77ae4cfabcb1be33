// SPDX-License-Identifier: Apache-2.0
// The relative weight of CPU and memory, used to compare sizes and free space.

import type { Pod } from '../../model/pod.ts';
import type { Resources } from '../../model/resources.ts';
import { isSizeRange, type PoolOffer } from './offer.ts';

export interface Weights {
  /** Per thousandth of a CPU. */
  readonly cpu: number;
  /** Per byte. */
  readonly memory: number;
  /** Whether sizes are compared by price instead. */
  readonly isPriced: boolean;
}

const GIB_PER_CPU = 2 ** 30 / 1000;

/** Bounds of the ratio, for pods that request almost no memory or almost no CPU. */
const MIN_RATIO = GIB_PER_CPU / 4;
const MAX_RATIO = 64 * GIB_PER_CPU;

/** Weighs the total CPU requests of the pods as much as their total memory requests. */
export function resourceWeights(pods: readonly Pod[], pools: readonly PoolOffer[]): Weights {
  const cpu = pods.reduce((sum, pod) => sum + pod.requests.cpuMilli, 0);
  const memory = pods.reduce((sum, pod) => sum + pod.requests.memoryBytes, 0);
  const ratio = Math.min(MAX_RATIO, Math.max(MIN_RATIO, memory / Math.max(cpu, 1)));
  const isPriced = pools.every(({ sizes }) =>
    isSizeRange(sizes)
      ? sizes.prices !== undefined
      : sizes.every((size) => size.price !== undefined),
  );
  return { cpu: 1, memory: 1 / ratio, isPriced };
}

export function weightOf(
  { cpuMilli, memoryBytes }: Pick<Resources, 'cpuMilli' | 'memoryBytes'>,
  weights: Weights,
): number {
  return cpuMilli * weights.cpu + memoryBytes * weights.memory;
}
