// SPDX-License-Identifier: Apache-2.0
// The sizes of a pool from the cheapest to the dearest, and the cheapest one that holds a given load.

import { type Resources, subtractResources } from '../../model/resources.ts';
import { CPU, EPHEMERAL_STORAGE, MEMORY, type ResourceNames } from '../state/resource-names.ts';
import type { MachineSize, SizeOffer, SizeRange } from './offer.ts';
import { type Weights, weightOf } from './weights.ts';

export interface Rung {
  readonly size: MachineSize;
  /** Allocatable by resource number. */
  readonly holds: readonly number[];
  readonly cost: number;
  /** Where to go on looking when the load has grown: cheaper ones cannot hold it either. */
  readonly index: number;
}

export interface Ladder {
  fit(load: readonly number[], from: number): Rung | undefined;
  /** The dearest one, to say by how much it falls short. */
  readonly largest: Rung;
}

export function isHeld(load: readonly number[], holds: readonly number[]): boolean {
  for (let id = 0; id < load.length; id += 1) {
    const amount = load[id] ?? 0;
    if (amount > 0 && amount > (holds[id] ?? 0)) return false;
  }
  return true;
}

/** Undefined when there are no sizes. */
export function listLadder(
  sizes: readonly SizeOffer[],
  names: ResourceNames,
  weights: Weights,
): Ladder | undefined {
  const rungs = sizes
    .map(({ name, capacity, allocatable, price }) => ({
      size: { name, capacity, allocatable },
      holds: names.vector(allocatable),
      cost: weights.isPriced ? (price ?? 0) : weightOf(capacity, weights),
    }))
    .sort((a, b) => a.cost - b.cost || (a.size.name < b.size.name ? -1 : 1))
    .map((rung, index): Rung => ({ ...rung, index }));
  const largest = rungs.at(-1);
  if (largest === undefined) return undefined;
  const top = mostOfEach(rungs);
  return {
    largest,
    fit: (load, from) => {
      if (!isHeld(load, top)) return undefined;
      for (let i = from; i < rungs.length; i += 1) {
        const rung = rungs[i];
        if (rung !== undefined && isHeld(load, rung.holds)) return rung;
      }
      return undefined;
    },
  };
}

/** The most of each resource that any size has; no size need have all of it. */
function mostOfEach(rungs: readonly Rung[]): readonly number[] {
  const top: number[] = [];
  for (const { holds } of rungs) {
    for (const [id, amount] of holds.entries()) top[id] = Math.max(top[id] ?? 0, amount);
  }
  return Array.from(top, (amount) => amount ?? 0);
}

const STEPPED = [
  [CPU, 'cpuMilli'],
  [MEMORY, 'memoryBytes'],
  [EPHEMERAL_STORAGE, 'ephemeralStorageBytes'],
] as const;

export function rangeLadder(range: SizeRange, names: ResourceNames, weights: Weights): Ladder {
  const top = names.vector(subtractResources(range.max, range.reserved));
  const known = new Map<string, Rung>();
  const rung = (capacity: Resources): Rung => {
    const key = `${capacity.cpuMilli} ${capacity.memoryBytes} ${capacity.ephemeralStorageBytes}`;
    const found = known.get(key) ?? rangeRung(capacity, range, { names, weights });
    known.set(key, found);
    return found;
  };
  return {
    largest: rung(range.max),
    fit: (load) => (isHeld(load, top) ? rung(capacityFor(load, range)) : undefined),
  };
}

function rangeRung(
  capacity: Resources,
  { reserved }: SizeRange,
  { names, weights }: { readonly names: ResourceNames; readonly weights: Weights },
): Rung {
  const allocatable = subtractResources(capacity, reserved);
  return {
    size: { name: '', capacity, allocatable },
    holds: names.vector(allocatable),
    cost: weightOf(capacity, weights),
    index: 0,
  };
}

function capacityFor(load: readonly number[], range: SizeRange): Resources {
  const stepped: Record<(typeof STEPPED)[number][1], number> = {
    cpuMilli: 0,
    memoryBytes: 0,
    ephemeralStorageBytes: 0,
  };
  for (const [id, field] of STEPPED) {
    const needed = (load[id] ?? 0) + range.reserved[field];
    stepped[field] = stepUp(needed, range, field);
  }
  return { ...range.max, ...stepped };
}

// A resource without a step has one amount only, the largest.
function stepUp(needed: number, range: SizeRange, field: (typeof STEPPED)[number][1]): number {
  const { [field]: min } = range.min;
  const { [field]: max } = range.max;
  const { [field]: step } = range.step;
  if (step <= 0) return max;
  const steps = Math.max(0, Math.ceil((needed - min) / step));
  return Math.min(max, min + steps * step);
}
