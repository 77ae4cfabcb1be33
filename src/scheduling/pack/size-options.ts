// SPDX-License-Identifier: Apache-2.0
// The sizes of a pool in ascending cost, and the cheapest one that holds a given load.

import { type Resources, subtractResources } from '../../model/resources.ts';
import { CPU, EPHEMERAL_STORAGE, MEMORY, type ResourceNames } from '../state/resource-names.ts';
import type { PlannedSize, SizeOffer, SizeRange } from './offer.ts';
import { type Weights, weightOf } from './weights.ts';

export interface SizeOption {
  readonly size: PlannedSize;
  /** Allocatable amounts by resource id. */
  readonly allocatable: readonly number[];
  readonly cost: number;
  /** Where to continue when the load grows: cheaper sizes cannot hold it either. */
  readonly index: number;
}

export interface SizeOptions {
  /** Among the allowed sizes from this index on. */
  cheapestFor(
    load: readonly number[],
    from: number,
    isAllowed?: (option: SizeOption) => boolean,
  ): SizeOption | undefined;
  /** The most expensive size, used to report shortfalls. */
  readonly largest: SizeOption;
}

export function loadFits(load: readonly number[], allocatable: readonly number[]): boolean {
  for (let id = 0; id < load.length; id += 1) {
    const amount = load[id] ?? 0;
    if (amount > 0 && amount > (allocatable[id] ?? 0)) return false;
  }
  return true;
}

/** Returns undefined if there are no sizes. */
export function optionsFromList(
  sizes: readonly SizeOffer[],
  names: ResourceNames,
  weights: Weights,
): SizeOptions | undefined {
  const options = sizes
    .map(({ name, capacity, allocatable, price }) => ({
      size: { name, capacity, allocatable },
      allocatable: names.vector(allocatable),
      cost: weights.isPriced ? (price ?? 0) : weightOf(capacity, weights),
    }))
    .sort((a, b) => a.cost - b.cost || (a.size.name < b.size.name ? -1 : 1))
    .map((option, index): SizeOption => ({ ...option, index }));
  const largest = options.at(-1);
  if (largest === undefined) return undefined;
  const maxima = maxOfEach(options);
  return {
    largest,
    cheapestFor: (load, from, isAllowed = always) => {
      if (!loadFits(load, maxima)) return undefined;
      for (let i = from; i < options.length; i += 1) {
        const option = options[i];
        if (option !== undefined && loadFits(load, option.allocatable) && isAllowed(option))
          return option;
      }
      return undefined;
    },
  };
}

const always = (): boolean => true;

/** The maximum of each resource over all sizes. No single size need have all of them. */
function maxOfEach(options: readonly SizeOption[]): readonly number[] {
  const maxima: number[] = [];
  for (const { allocatable } of options) {
    for (const [id, amount] of allocatable.entries())
      maxima[id] = Math.max(maxima[id] ?? 0, amount);
  }
  return Array.from(maxima, (amount) => amount ?? 0);
}

const STEPPED = [
  [CPU, 'cpuMilli'],
  [MEMORY, 'memoryBytes'],
  [EPHEMERAL_STORAGE, 'ephemeralStorageBytes'],
] as const;

export function optionsFromRange(
  range: SizeRange,
  names: ResourceNames,
  weights: Weights,
): SizeOptions {
  const maxima = names.vector(subtractResources(range.max, range.reserved));
  const known = new Map<string, SizeOption>();
  const option = (capacity: Resources): SizeOption => {
    const key = `${capacity.cpuMilli} ${capacity.memoryBytes} ${capacity.ephemeralStorageBytes}`;
    const found = known.get(key) ?? rangeOption(capacity, range, { names, weights });
    known.set(key, found);
    return found;
  };
  return {
    largest: option(range.max),
    cheapestFor: (load, _from, isAllowed = always) => {
      if (!loadFits(load, maxima)) return undefined;
      // The smallest capacity in everything: if it is not allowed, no other one is.
      const smallest = option(capacityFor(load, range));
      return isAllowed(smallest) ? smallest : undefined;
    },
  };
}

function rangeOption(
  capacity: Resources,
  { reserved }: SizeRange,
  { names, weights }: { readonly names: ResourceNames; readonly weights: Weights },
): SizeOption {
  const allocatable = subtractResources(capacity, reserved);
  return {
    size: { name: '', capacity, allocatable },
    allocatable: names.vector(allocatable),
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

// A resource without a step always has its maximum.
function stepUp(needed: number, range: SizeRange, field: (typeof STEPPED)[number][1]): number {
  const { [field]: min } = range.min;
  const { [field]: max } = range.max;
  const { [field]: step } = range.step;
  if (step <= 0) return max;
  const steps = Math.max(0, Math.ceil((needed - min) / step));
  return Math.min(max, min + steps * step);
}
