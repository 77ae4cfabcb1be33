// SPDX-License-Identifier: Apache-2.0
// What pools offer: machines of certain sizes, in certain places, up to certain limits.

import type { Labels } from '../../model/labels.ts';
import type { Resources } from '../../model/resources.ts';
import type { Taint } from '../../model/taints.ts';

/** How much may be added; what is absent is not limited. */
export interface Limits {
  readonly machines?: number;
  readonly cpuMilli?: number;
  readonly memoryBytes?: number;
}

export interface SizeOffer {
  readonly name: string;
  /** What the machine is made of; limits count it. */
  readonly capacity: Resources;
  /** What pods may hold of it. */
  readonly allocatable: Resources;
  /** Labels that only machines of this size carry. */
  readonly labels?: Labels;
  /** Heeded when every size of every pool has one; else sizes are weighed by what they hold. */
  readonly price?: number;
}

/** Any size between two, by steps in cpu, memory and ephemeral storage; the rest is as in `max`. */
export interface SizeRange {
  readonly min: Resources;
  readonly max: Resources;
  readonly step: Resources;
  /** Of each machine's capacity, what pods cannot have. */
  readonly reserved: Resources;
}

/** A place that machines can be made in, such as a host; its labels tell it from the others. */
export interface DomainOffer {
  readonly name: string;
  readonly labels: Labels;
  readonly limits?: Limits;
}

export interface PoolOffer {
  readonly name: string;
  readonly labels: Labels;
  readonly taints: readonly Taint[];
  readonly sizes: readonly SizeOffer[] | SizeRange;
  /** Absent: one place without a name. */
  readonly domains?: readonly DomainOffer[];
  readonly limits?: Limits;
  /** The highest that can take a pod is used first. */
  readonly priority?: number;
}

export interface MachineSize {
  /** Empty for one out of a range. */
  readonly name: string;
  readonly capacity: Resources;
  readonly allocatable: Resources;
}

export function isRange(sizes: PoolOffer['sizes']): sizes is SizeRange {
  return !Array.isArray(sizes);
}
