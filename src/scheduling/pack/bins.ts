// SPDX-License-Identifier: Apache-2.0
// Places that are open, sorted by the room they have left: looking for a tight fit does not look at all of
// them, so that the cost of a search does not grow with their number.

import type { Pod } from '../../model/pod.ts';
import type { Slot } from '../state/slot.ts';
import type { Daemons } from './daemons.ts';
import type { Rung } from './ladder.ts';
import type { Load } from './load.ts';
import type { Template } from './template.ts';

export interface Machine {
  readonly template: Template;
  rung: Rung;
  readonly daemons: Daemons;
  /** Those of the daemons that were there before the first pod. */
  readonly settled: readonly Pod[];
  /** Room for daemons that must wait. */
  kept: Load;
}

export interface Bin {
  readonly slot: Slot;
  /** Equal for bins that every node rule treats alike. */
  readonly ruleClass: number;
  /** Absent for a node that exists. */
  readonly machine?: Machine;
  /** Whether pods may be put in; the next machine of a template is not open yet. */
  isOpen: boolean;
  /** Room at the time it was last put in. */
  cpuMilli: number;
  memoryBytes: number;
  shelf: Shelf | undefined;
  index: number;
}

/** Bins with about the same room. */
interface Shelf {
  readonly cpuClass: number;
  readonly memoryClass: number;
  readonly bins: Bin[];
}

export interface Need {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

/** Bins with enough room that are compared before the tightest is taken. */
const COMPARED = 32;

export function newBin(slot: Slot, ruleClass: number, machine?: Machine): Bin {
  return {
    slot,
    ruleClass,
    ...(machine !== undefined && { machine }),
    isOpen: false,
    cpuMilli: 0,
    memoryBytes: 0,
    shelf: undefined,
    index: -1,
  };
}

/** How finely bins are told apart: so many shelves from an amount to its double. */
const SHELVES_PER_DOUBLING = 2;

function classOf(amount: number): number {
  return amount < 1 ? 0 : Math.floor(Math.log2(amount) * SHELVES_PER_DOUBLING) + 1;
}

export class Bins {
  /** From little room to much. */
  readonly #shelves: Shelf[] = [];
  readonly #cpuWeight: number;
  readonly #memoryWeight: number;

  constructor(weights: { readonly cpu: number; readonly memory: number }) {
    this.#cpuWeight = weights.cpu;
    this.#memoryWeight = weights.memory;
  }

  *all(): Generator<Bin> {
    for (const { bins } of this.#shelves) yield* bins;
  }

  put(bin: Bin, { cpuMilli, memoryBytes }: Need): void {
    bin.cpuMilli = cpuMilli;
    bin.memoryBytes = memoryBytes;
    const cpuClass = classOf(cpuMilli);
    const memoryClass = classOf(memoryBytes);
    const { shelf } = bin;
    if (shelf?.cpuClass === cpuClass && shelf.memoryClass === memoryClass) return;
    this.drop(bin);
    const next = this.#shelf(cpuClass, memoryClass);
    bin.shelf = next;
    bin.index = next.bins.length;
    next.bins.push(bin);
  }

  drop(bin: Bin): void {
    if (bin.shelf === undefined) return;
    const { bins } = bin.shelf;
    const last = bins.pop();
    if (last !== undefined && last !== bin) {
      bins[bin.index] = last;
      last.index = bin.index;
    }
    bin.shelf = undefined;
  }

  #shelf(cpuClass: number, memoryClass: number): Shelf {
    const at = this.#shelves.findIndex(
      (one) => compareShelves(one, { cpuClass, memoryClass }) >= 0,
    );
    const found = this.#shelves[at];
    if (found?.cpuClass === cpuClass && found.memoryClass === memoryClass) return found;
    const shelf = { cpuClass, memoryClass, bins: [] };
    this.#shelves.splice(at < 0 ? this.#shelves.length : at, 0, shelf);
    return shelf;
  }

  /** An acceptable bin that would have little left over. */
  tightest(need: Need, isAcceptable: (bin: Bin) => boolean): Bin | undefined {
    const cpuClass = need.cpuMilli > 0 ? classOf(need.cpuMilli) : 0;
    const memoryClass = need.memoryBytes > 0 ? classOf(need.memoryBytes) : 0;
    for (const shelf of this.#shelves) {
      if (shelf.cpuClass < cpuClass || shelf.memoryClass < memoryClass) continue;
      const found = this.#tightestOn(shelf.bins, need, isAcceptable);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #tightestOn(
    bins: readonly Bin[],
    { cpuMilli, memoryBytes }: Need,
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
      if (compared >= COMPARED && best !== undefined) break;
    }
    return best;
  }
}

function compareShelves(left: Omit<Shelf, 'bins'>, right: Omit<Shelf, 'bins'>): number {
  const room = left.cpuClass + left.memoryClass - (right.cpuClass + right.memoryClass);
  return room === 0 ? left.cpuClass - right.cpuClass : room;
}
