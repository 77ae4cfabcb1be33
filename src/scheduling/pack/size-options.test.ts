// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { ResourceNames } from '../state/resource-names.ts';
import { aPod, type PodOptions } from '../testing/builders.ts';
import { aPool, aSize, resourcesOf } from '../testing/offers.ts';
import { optionsFromList, optionsFromRange, type SizeOptions } from './size-options.ts';
import { resourceWeights, weightOf } from './weights.ts';

const GIB = 2 ** 30;
const EVEN = { cpu: 1 / 1000, memory: 1 / (2 * GIB), isPriced: false };

function list(...sizes: Parameters<typeof aSize>[0][]): SizeOptions {
  const options = optionsFromList(
    sizes.map((size) => aSize(size)),
    new ResourceNames(),
    EVEN,
  );
  if (options === undefined) throw new Error('no sizes');
  return options;
}

describe('optionsFromList', () => {
  test('returns the cheapest size that holds the load', () => {
    const options = list('8x16', '2x4', '4x8');
    const fit = (cpu: number, gib: number): string | undefined =>
      options.cheapestFor([cpu * 1000, gib * GIB], 0)?.size.name;
    expect(fit(0, 0)).toBe('2x4');
    expect(fit(2, 4)).toBe('2x4');
    expect(fit(2.001, 4)).toBe('4x8');
    expect(fit(1, 9)).toBe('8x16');
    expect(fit(9, 1)).toBeUndefined();
    expect(options.largest.size.name).toBe('8x16');
  });

  test('continues at the given index', () => {
    const options = list('2x4', '4x8');
    expect(options.cheapestFor([0], 1)?.size.name).toBe('4x8');
    expect(options.cheapestFor([0], 2)).toBeUndefined();
    expect(options.cheapestFor([3000], 0)?.index).toBe(1);
  });

  test('does not need one size with the maximum of every resource', () => {
    const options = list('8x4', '2x32');
    expect(options.cheapestFor([8000, 4 * GIB], 0)?.size.name).toBe('8x4');
    expect(options.cheapestFor([2000, 32 * GIB], 0)?.size.name).toBe('2x32');
    expect(options.cheapestFor([8000, 32 * GIB], 0)).toBeUndefined();
  });

  test('holds nothing of a resource that no size has', () => {
    const names = new ResourceNames();
    const gpu = names.id('gpu');
    const options = optionsFromList([aSize('4x8')], names, EVEN);
    const load = (amount: number): number[] => {
      const all = [1, 1, 1, 1];
      all[gpu] = amount;
      return all;
    };
    expect(options?.cheapestFor(load(0), 0)).toBeDefined();
    expect(options?.cheapestFor(load(1), 0)).toBeUndefined();
  });

  test('sorts equally expensive sizes by name, and returns undefined without sizes', () => {
    const sizes = [aSize('4x8', { name: 'b' }), aSize('4x8', { name: 'a' })];
    expect(optionsFromList(sizes, new ResourceNames(), EVEN)?.cheapestFor([1], 0)?.size.name).toBe(
      'a',
    );
    expect(optionsFromList([], new ResourceNames(), EVEN)).toBeUndefined();
  });

  test('uses prices if they count, otherwise weights', () => {
    const sizes = [aSize('2x4', { price: 7 }), aSize('4x8', { price: 3 })];
    const priced = optionsFromList(sizes, new ResourceNames(), { ...EVEN, isPriced: true });
    expect(priced?.cheapestFor([1], 0)).toMatchObject({ size: { name: '4x8' }, cost: 3 });
    const weighed = optionsFromList(sizes, new ResourceNames(), EVEN);
    expect(weighed?.cheapestFor([1], 0)).toMatchObject({ size: { name: '2x4' }, cost: 4 });
  });
});

describe('optionsFromRange', () => {
  const range = {
    min: resourcesOf(2, 4),
    max: resourcesOf(9, 16),
    step: { ...resourcesOf(2, 2), ephemeralStorageBytes: 0 },
    reserved: { ...resourcesOf(0, 1, 0), ephemeralStorageBytes: 0 },
  };
  const options = optionsFromRange(range, new ResourceNames(), EVEN);
  const fit = (cpu: number, gib: number): readonly number[] | undefined => {
    const option = options.cheapestFor([cpu * 1000, gib * GIB], 0);
    return option && [option.size.capacity.cpuMilli / 1000, option.size.capacity.memoryBytes / GIB];
  };

  test('steps up from the minimum', () => {
    expect(fit(0, 0)).toEqual([2, 4]);
    expect(fit(2, 3)).toEqual([2, 4]);
    expect(fit(2.1, 3.1)).toEqual([4, 6]);
    expect(fit(8, 15)).toEqual([8, 16]);
    expect(fit(8.1, 0)).toEqual([9, 4]);
    expect(fit(9, 15)).toEqual([9, 16]);
    expect(fit(9.1, 0)).toBeUndefined();
    expect(fit(0, 15.1)).toBeUndefined();
  });

  test('returns the same option for the same size, including the largest', () => {
    expect(options.cheapestFor([2100], 0)).toBe(options.cheapestFor([3900], 0));
    expect(options.cheapestFor([9000, 15 * GIB], 0)).toBe(options.largest);
    expect(options.cheapestFor([2100], 0)).not.toBe(options.cheapestFor([2000], 0));
    expect(options.cheapestFor([2100], 0)).toMatchObject({ cost: 6, index: 0, size: { name: '' } });
  });
});

describe('resourceWeights', () => {
  test('follow the requests of the pods', () => {
    const pods = [aPod({ cpu: '1', memory: '1Gi' }), aPod({ cpu: '3', memory: '1Gi' })];
    expect(resourceWeights(pods, [])).toEqual({ cpu: 1, memory: 2000 / GIB, isPriced: true });
    expect(weightOf({ cpuMilli: 2000, memoryBytes: GIB }, resourceWeights(pods, []))).toBe(4000);
  });

  test('stay within bounds if almost nothing is requested', () => {
    const gibPerCpu = (...pods: PodOptions[]): number =>
      1000 / (resourceWeights(pods.map(aPod), []).memory * GIB);
    expect(gibPerCpu({ cpu: '1' })).toBeCloseTo(0.25);
    expect(gibPerCpu({ cpu: '1', memory: '1Mi' })).toBeCloseTo(0.25);
    expect(gibPerCpu({ memory: '1Gi' })).toBeCloseTo(64);
    expect(gibPerCpu({ cpu: '1', memory: '8Gi' })).toBeCloseTo(8);
    expect(gibPerCpu()).toBeCloseTo(0.25);
  });

  test('use prices if every size has one', () => {
    const priced = aPool({ sizes: [aSize('2x4', { price: 1 })] });
    expect(resourceWeights([], [priced]).isPriced).toBe(true);
    expect(resourceWeights([], [priced, aPool()]).isPriced).toBe(false);
    const range = {
      min: resourcesOf(1, 1),
      max: resourcesOf(2, 2),
      step: resourcesOf(1, 1),
      reserved: resourcesOf(0, 0),
    };
    expect(resourceWeights([], [aPool({ sizes: range })]).isPriced).toBe(false);
  });
});
