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

/** A machine of common shape: so many bytes for a thousandth of a cpu. */
const BYTES_PER_MILLI = (4 * 2 ** 30) / 1000;

// What nobody asks for decides only between equals.
const NEXT_TO_NOTHING = 1e-6;

/** Each is worth as much as the pods ask for it. */
export function weigh(pods: readonly Pod[], pools: readonly PoolOffer[]): Weights {
  const cpu = pods.reduce((sum, pod) => sum + pod.requests.cpuMilli, 0);
  const memory = pods.reduce((sum, pod) => sum + pod.requests.memoryBytes, 0);
  const isPriced = pools.every(
    ({ sizes }) => !isRange(sizes) && sizes.every((size) => size.price !== undefined),
  );
  if (cpu === 0 && memory === 0) return { cpu: 1, memory: 1 / BYTES_PER_MILLI, isPriced };
  return {
    cpu: cpu === 0 ? (NEXT_TO_NOTHING / memory) * BYTES_PER_MILLI : 1 / cpu,
    memory: memory === 0 ? NEXT_TO_NOTHING / cpu / BYTES_PER_MILLI : 1 / memory,
    isPriced,
  };
}

export function weightOf(
  { cpuMilli, memoryBytes }: Pick<Resources, 'cpuMilli' | 'memoryBytes'>,
  weights: Weights,
): number {
  return cpuMilli * weights.cpu + memoryBytes * weights.memory;
}
