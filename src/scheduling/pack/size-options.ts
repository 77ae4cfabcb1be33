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
  /** In ascending order of cost. Of a range, some of its sizes. */
  readonly list: readonly SizeOption[];
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
  const maxima = maximaSoFar(options);
  return {
    largest,
    list: options,
    cheapestFor: (load, from, isAllowed = always) => {
      for (let i = firstWithMaxima(maxima, load, from); i < options.length; i += 1) {
        const option = options[i];
        if (option !== undefined && loadFits(load, option.allocatable) && isAllowed(option))
          return option;
      }
      return undefined;
    },
  };
}

const always = (): boolean => true;

/** The maximum of each resource over each size and all cheaper ones. No single size need have all of them. */
function maximaSoFar(options: readonly SizeOption[]): readonly (readonly number[])[] {
  let maxima: readonly number[] = [];
  return options.map(({ allocatable }) => {
    const longer = allocatable.length > maxima.length ? allocatable : maxima;
    const other = longer === maxima ? allocatable : maxima;
    maxima = longer.map((amount, id) => Math.max(amount, other[id] ?? 0));
    return maxima;
  });
}

/** Where the search for a size begins: no size before it has enough of every resource. */
function firstWithMaxima(
  maxima: readonly (readonly number[])[],
  load: readonly number[],
  from: number,
): number {
  let low = from;
  let high = maxima.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (loadFits(load, maxima[middle] ?? [])) high = middle;
    else low = middle + 1;
  }
  return low;
}

const STEPPED = [
  [CPU, 'cpuMilli'],
  [MEMORY, 'memoryBytes'],
  [EPHEMERAL_STORAGE, 'ephemeralStorageBytes'],
] as const;

/** Of the largest size of a range, which sizes are listed. */
const PARTS = [0.25, 0.5, 0.75, 1] as const;

export function optionsFromRange(
  range: SizeRange,
  names: ResourceNames,
  weights: Weights,
): SizeOptions {
  const maxima = names.vector(allocatableOf(range.max, range));
  const known = new Map<string, SizeOption>();
  const option = (capacity: Resources): SizeOption => {
    const key = `${capacity.cpuMilli} ${capacity.memoryBytes} ${capacity.ephemeralStorageBytes}`;
    const found = known.get(key) ?? rangeOption(capacity, range, { names, weights });
    known.set(key, found);
    return found;
  };
  return {
    largest: option(range.max),
    list: PARTS.map((part) =>
      option(
        capacityFor(
          maxima.map((max) => max * part),
          range,
        ),
      ),
    ),
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
  range: SizeRange,
  { names, weights }: { readonly names: ResourceNames; readonly weights: Weights },
): SizeOption {
  const allocatable = allocatableOf(capacity, range);
  return {
    size: { name: '', capacity, allocatable },
    allocatable: names.vector(allocatable),
    cost: weights.isPriced ? priceOf(capacity, range) : weightOf(capacity, weights),
    index: 0,
  };
}

function priceOf({ cpuMilli, memoryBytes }: Resources, { prices }: SizeRange): number {
  return cpuMilli * (prices?.perCpuMilli ?? 0) + memoryBytes * (prices?.perMemoryByte ?? 0);
}

function allocatableOf(capacity: Resources, { reserved, reservedShare }: SizeRange): Resources {
  const rest = subtractResources(capacity, reserved);
  if (reservedShare === undefined) return rest;
  const less = (field: keyof typeof reservedShare): number =>
    Math.max(0, Math.floor(rest[field] - capacity[field] * reservedShare[field]));
  return {
    ...rest,
    memoryBytes: less('memoryBytes'),
    ephemeralStorageBytes: less('ephemeralStorageBytes'),
  };
}

function capacityFor(load: readonly number[], range: SizeRange): Resources {
  const stepped: Record<(typeof STEPPED)[number][1], number> = {
    cpuMilli: 0,
    memoryBytes: 0,
    ephemeralStorageBytes: 0,
  };
  for (const [id, field] of STEPPED) {
    const share = field === 'cpuMilli' ? 0 : (range.reservedShare?.[field] ?? 0);
    // One more for the rounding of the share.
    const rounding = share === 0 ? 0 : 1;
    const needed = ((load[id] ?? 0) + rounding + range.reserved[field]) / (1 - share);
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
