// SPDX-License-Identifier: Apache-2.0
// Open bins, sorted by free space, so that finding a tight fit does not have to check all of them.

import type { Pod } from '../../model/pod.ts';
import type { NodeInfo } from '../state/node-info.ts';
import type { DaemonPods } from './daemon-pods.ts';
import type { Load } from './load.ts';
import type { MachineTemplate } from './machine-template.ts';
import type { SizeOption } from './size-options.ts';

export interface BinMachine {
  readonly template: MachineTemplate;
  option: SizeOption;
  readonly daemons: DaemonPods;
  /** Daemon pods that were admitted before the first pod. */
  readonly daemonPods: readonly Pod[];
  /** Space reserved for daemon pods that are not admitted yet. */
  reserved: Load;
}

export interface Bin {
  readonly nodeInfo: NodeInfo;
  /** Equal for bins with equal results of the node rules. */
  readonly ruleClass: number;
  /** Absent for an existing node. */
  readonly machine?: BinMachine;
  /** Whether pods may be placed. The next machine of a template is not open yet. */
  isOpen: boolean;
  /** Free space when the bin was last sorted. */
  cpuMilli: number;
  memoryBytes: number;
  bucket: Bucket | undefined;
  index: number;
}

/** Bins with about the same free space. */
interface Bucket {
  readonly cpuClass: number;
  readonly memoryClass: number;
  readonly bins: Bin[];
}

export interface BinDemand {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

/** How many bins that fit are compared before the tightest is chosen. */
const MAX_COMPARED = 32;

export function newBin(nodeInfo: NodeInfo, ruleClass: number, machine?: BinMachine): Bin {
  return {
    nodeInfo,
    ruleClass,
    ...(machine !== undefined && { machine }),
    isOpen: false,
    cpuMilli: 0,
    memoryBytes: 0,
    bucket: undefined,
    index: -1,
  };
}

/** Granularity: number of buckets between an amount and its double. */
const BUCKETS_PER_DOUBLING = 2;

function sizeClass(amount: number): number {
  return amount < 1 ? 0 : Math.floor(Math.log2(amount) * BUCKETS_PER_DOUBLING) + 1;
}

export class Bins {
  /** In ascending order of free space. */
  readonly #buckets: Bucket[] = [];
  readonly #cpuWeight: number;
  readonly #memoryWeight: number;

  constructor(weights: { readonly cpu: number; readonly memory: number }) {
    this.#cpuWeight = weights.cpu;
    this.#memoryWeight = weights.memory;
  }

  *all(): Generator<Bin> {
    for (const { bins } of this.#buckets) yield* bins;
  }

  *allFromEmptiest(): Generator<Bin> {
    for (const { bins } of this.#buckets.toReversed()) yield* bins;
  }

  put(bin: Bin, { cpuMilli, memoryBytes }: BinDemand): void {
    bin.cpuMilli = cpuMilli;
    bin.memoryBytes = memoryBytes;
    const cpuClass = sizeClass(cpuMilli);
    const memoryClass = sizeClass(memoryBytes);
    const { bucket } = bin;
    if (bucket?.cpuClass === cpuClass && bucket.memoryClass === memoryClass) return;
    this.drop(bin);
    const next = this.#bucketFor(cpuClass, memoryClass);
    bin.bucket = next;
    bin.index = next.bins.length;
    next.bins.push(bin);
  }

  drop(bin: Bin): void {
    if (bin.bucket === undefined) return;
    const { bins } = bin.bucket;
    const last = bins.pop();
    if (last !== undefined && last !== bin) {
      bins[bin.index] = last;
      last.index = bin.index;
    }
    bin.bucket = undefined;
  }

  #bucketFor(cpuClass: number, memoryClass: number): Bucket {
    const at = this.#buckets.findIndex(
      (one) => compareBuckets(one, { cpuClass, memoryClass }) >= 0,
    );
    const found = this.#buckets[at];
    if (found?.cpuClass === cpuClass && found.memoryClass === memoryClass) return found;
    const bucket = { cpuClass, memoryClass, bins: [] };
    this.#buckets.splice(at < 0 ? this.#buckets.length : at, 0, bucket);
    return bucket;
  }

  /** An acceptable bin with little space left over. */
  tightest(need: BinDemand, isAcceptable: (bin: Bin) => boolean): Bin | undefined {
    const least = classesOf(need);
    for (const bucket of this.#buckets) {
      if (!isAtLeast(bucket, least)) continue;
      const found = this.#tightestIn(bucket.bins, need, isAcceptable);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Up to `limit` acceptable bins, those with little free space first. */
  collect(need: BinDemand, limit: number, isAcceptable: (bin: Bin) => boolean): readonly Bin[] {
    const found: Bin[] = [];
    const least = classesOf(need);
    for (const bucket of this.#buckets) {
      if (!isAtLeast(bucket, least)) continue;
      for (const bin of bucket.bins) {
        if (found.length >= limit) return found;
        if (isAcceptable(bin)) found.push(bin);
      }
    }
    return found;
  }

  #tightestIn(
    bins: readonly Bin[],
    { cpuMilli, memoryBytes }: BinDemand,
    isAcceptable: (bin: Bin) => boolean,
  ): Bin | undefined {
    let best: Bin | undefined;
    let least = Number.POSITIVE_INFINITY;
    let compared = 0;
    for (const bin of bins) {
      const cpuLeft = bin.cpuMilli - cpuMilli;
      const memoryLeft = bin.memoryBytes - memoryBytes;
      if ((cpuLeft < 0 && cpuMilli > 0) || (memoryLeft < 0 && memoryBytes > 0)) continue;
      const left = cpuLeft * this.#cpuWeight + memoryLeft * this.#memoryWeight;
      compared += 1;
      if (left < least && isAcceptable(bin)) {
        best = bin;
        least = left;
      }
      if (compared >= MAX_COMPARED && best !== undefined) break;
    }
    return best;
  }
}

type Classes = Omit<Bucket, 'bins'>;

function classesOf({ cpuMilli, memoryBytes }: BinDemand): Classes {
  return {
    cpuClass: cpuMilli > 0 ? sizeClass(cpuMilli) : 0,
    memoryClass: memoryBytes > 0 ? sizeClass(memoryBytes) : 0,
  };
}

function isAtLeast(bucket: Classes, least: Classes): boolean {
  return bucket.cpuClass >= least.cpuClass && bucket.memoryClass >= least.memoryClass;
}

function compareBuckets(left: Classes, right: Classes): number {
  const difference = left.cpuClass + left.memoryClass - (right.cpuClass + right.memoryClass);
  return difference === 0 ? left.cpuClass - right.cpuClass : difference;
}
