// SPDX-License-Identifier: Apache-2.0
// What a cpu and a byte are worth against each other, for weighing sizes and leftovers.

import type { Pod } from '../../model/pod.ts';
import type { Resources } from '../../model/resources.ts';
import { isRange, type PoolOffer } from './offer.ts';

export interface Weights {
  /** Of a thousandth of a cpu. */
  readonly cpu: number;
  /** Of a byte. */
  readonly memory: number;
  /** Whether sizes cost what their prices say instead. */
  readonly isPriced: boolean;
}

const GIB_PER_CPU = 2 ** 30 / 1000;

/** What a byte is worth must not be decided by pods that hardly ask for any. */
const LEAST_RATIO = GIB_PER_CPU / 4;
const MOST_RATIO = 64 * GIB_PER_CPU;

/** All the cpu that the pods ask for is worth as much as all the memory. */
export function weigh(pods: readonly Pod[], pools: readonly PoolOffer[]): Weights {
  const cpu = pods.reduce((sum, pod) => sum + pod.requests.cpuMilli, 0);
  const memory = pods.reduce((sum, pod) => sum + pod.requests.memoryBytes, 0);
  const ratio = Math.min(MOST_RATIO, Math.max(LEAST_RATIO, memory / Math.max(cpu, 1)));
  const isPriced = pools.every(
    ({ sizes }) => !isRange(sizes) && sizes.every((size) => size.price !== undefined),
  );
  return { cpu: 1, memory: 1 / ratio, isPriced };
}

export function weightOf(
  { cpuMilli, memoryBytes }: Pick<Resources, 'cpuMilli' | 'memoryBytes'>,
  weights: Weights,
): number {
  return cpuMilli * weights.cpu + memoryBytes * weights.memory;
}
