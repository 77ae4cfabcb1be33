// SPDX-License-Identifier: Apache-2.0
// What pools offer: machine sizes, domains and limits.

import type { Labels } from '../../model/labels.ts';
import type { Resources } from '../../model/resources.ts';
import type { Taint } from '../../model/taints.ts';

/** How much may be added. An absent field is unlimited. */
export interface Limits {
  readonly machines?: number;
  readonly cpuMilli?: number;
  readonly memoryBytes?: number;
  readonly diskBytes?: number;
}

export interface SizeOffer {
  readonly name: string;
  /** Size of the machine; counted against limits. */
  readonly capacity: Resources;
  /** What pods may request of it. */
  readonly allocatable: Resources;
  /** Labels of machines of this size. */
  readonly labels?: Labels;
  /** Used if every size of every pool has a price. Otherwise sizes are compared by capacity. */
  readonly price?: number;
}

/**
 * Any size between `min` and `max`, in steps of cpu, memory and ephemeral storage. Other resources are as in
 * `max`.
 */
export interface SizeRange {
  readonly min: Resources;
  readonly max: Resources;
  readonly step: Resources;
  /** The part of a machine's capacity that is not allocatable, whatever its size. */
  readonly reserved: Resources;
  /** The share of its capacity that is not allocatable in addition, from 0 to 1. Absent: none. */
  readonly reservedShare?: {
    readonly memoryBytes: number;
    readonly ephemeralStorageBytes: number;
  };
  /** Price of a machine. Absent: as of a size without a price. */
  readonly prices?: { readonly perCpuMilli: number; readonly perMemoryByte: number };
}

/** A placement domain, such as a host. Its labels distinguish its nodes. */
export interface DomainOffer {
  readonly name: string;
  readonly labels: Labels;
  readonly limits?: Limits;
  /** Maximum CPU of one machine. Absent: no limit. */
  readonly maxCpuMilli?: number;
  /** Of domains that are otherwise equal, those with a lower number are used first. Absent: 0. */
  readonly order?: number;
}

export interface PoolOffer {
  readonly name: string;
  readonly labels: Labels;
  readonly taints: readonly Taint[];
  readonly sizes: readonly SizeOffer[] | SizeRange;
  /** Absent: a single unnamed domain. */
  readonly domains?: readonly DomainOffer[];
  readonly limits?: Limits;
  /** Features that its nodes will declare (`status.declaredFeatures`). Absent: none. */
  readonly declaredFeatures?: readonly string[];
  /** Pools with a higher priority are used first. */
  readonly priority?: number;
  /** Memory that each machine takes from its domain beyond its capacity. */
  readonly memoryOverheadBytes?: number;
  /** The number of its machines. Of the pools that have it, the one with the fewest machines is used first. */
  readonly balance?: number;
}

export interface PlannedSize {
  /** Empty for a size of a range. */
  readonly name: string;
  readonly capacity: Resources;
  readonly allocatable: Resources;
}

export function isSizeRange(sizes: PoolOffer['sizes']): sizes is SizeRange {
  return !Array.isArray(sizes);
}
