// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { ResourceNames } from '../state/resource-names.ts';
import { aPod, type PodWish } from '../testing/builders.ts';
import { aPool, aSize, room } from '../testing/offers.ts';
import { type Ladder, listLadder, rangeLadder } from './ladder.ts';
import { weigh, weightOf } from './weights.ts';

const GIB = 2 ** 30;
const EVEN = { cpu: 1 / 1000, memory: 1 / (2 * GIB), isPriced: false };

function list(...sizes: Parameters<typeof aSize>[0][]): Ladder {
  const ladder = listLadder(
    sizes.map((size) => aSize(size)),
    new ResourceNames(),
    EVEN,
  );
  if (ladder === undefined) throw new Error('no sizes');
  return ladder;
}

describe('a list of sizes', () => {
  test('gives the cheapest that holds the load', () => {
    const ladder = list('8x16', '2x4', '4x8');
    const fit = (cpu: number, gib: number): string | undefined =>
      ladder.fit([cpu * 1000, gib * GIB], 0)?.size.name;
    expect(fit(0, 0)).toBe('2x4');
    expect(fit(2, 4)).toBe('2x4');
    expect(fit(2.001, 4)).toBe('4x8');
    expect(fit(1, 9)).toBe('8x16');
    expect(fit(9, 1)).toBeUndefined();
    expect(ladder.largest.size.name).toBe('8x16');
  });

  test('looks on from where it was', () => {
    const ladder = list('2x4', '4x8');
    expect(ladder.fit([0], 1)?.size.name).toBe('4x8');
    expect(ladder.fit([0], 2)).toBeUndefined();
    expect(ladder.fit([3000], 0)?.index).toBe(1);
  });

  test('no size need have the most of everything', () => {
    const ladder = list('8x4', '2x32');
    expect(ladder.fit([8000, 4 * GIB], 0)?.size.name).toBe('8x4');
    expect(ladder.fit([2000, 32 * GIB], 0)?.size.name).toBe('2x32');
    expect(ladder.fit([8000, 32 * GIB], 0)).toBeUndefined();
  });

  test('a resource that no size has holds nothing', () => {
    const names = new ResourceNames();
    const gpu = names.id('gpu');
    const ladder = listLadder([aSize('4x8')], names, EVEN);
    const load = (amount: number): number[] => {
      const all = [1, 1, 1, 1];
      all[gpu] = amount;
      return all;
    };
    expect(ladder?.fit(load(0), 0)).toBeDefined();
    expect(ladder?.fit(load(1), 0)).toBeUndefined();
  });

  test('equally dear sizes come by name; none at all make no ladder', () => {
    const sizes = [aSize('4x8', { name: 'b' }), aSize('4x8', { name: 'a' })];
    expect(listLadder(sizes, new ResourceNames(), EVEN)?.fit([1], 0)?.size.name).toBe('a');
    expect(listLadder([], new ResourceNames(), EVEN)).toBeUndefined();
  });

  test('costs its price when prices count, else its weight', () => {
    const sizes = [aSize('2x4', { price: 7 }), aSize('4x8', { price: 3 })];
    const priced = listLadder(sizes, new ResourceNames(), { ...EVEN, isPriced: true });
    expect(priced?.fit([1], 0)).toMatchObject({ size: { name: '4x8' }, cost: 3 });
    const weighed = listLadder(sizes, new ResourceNames(), EVEN);
    expect(weighed?.fit([1], 0)).toMatchObject({ size: { name: '2x4' }, cost: 4 });
  });
});

describe('a range of sizes', () => {
  const range = {
    min: room(2, 4),
    max: room(9, 16),
    step: { ...room(2, 2), ephemeralStorageBytes: 0 },
    reserved: { ...room(0, 1, 0), ephemeralStorageBytes: 0 },
  };
  const ladder = rangeLadder(range, new ResourceNames(), EVEN);
  const fit = (cpu: number, gib: number): readonly number[] | undefined => {
    const rung = ladder.fit([cpu * 1000, gib * GIB], 0);
    return rung && [rung.size.capacity.cpuMilli / 1000, rung.size.capacity.memoryBytes / GIB];
  };

  test('steps up from the smallest', () => {
    expect(fit(0, 0)).toEqual([2, 4]);
    expect(fit(2, 3)).toEqual([2, 4]);
    expect(fit(2.1, 3.1)).toEqual([4, 6]);
    expect(fit(8, 15)).toEqual([8, 16]);
    expect(fit(8.1, 0)).toEqual([9, 4]);
    expect(fit(9, 15)).toEqual([9, 16]);
    expect(fit(9.1, 0)).toBeUndefined();
    expect(fit(0, 15.1)).toBeUndefined();
  });

  test('the same size is the same rung, the largest included', () => {
    expect(ladder.fit([2100], 0)).toBe(ladder.fit([3900], 0));
    expect(ladder.fit([9000, 15 * GIB], 0)).toBe(ladder.largest);
    expect(ladder.fit([2100], 0)).not.toBe(ladder.fit([2000], 0));
    expect(ladder.fit([2100], 0)).toMatchObject({ cost: 6, index: 0, size: { name: '' } });
  });
});

describe('weights', () => {
  test('follow what the pods ask for', () => {
    const pods = [aPod({ cpu: '1', memory: '1Gi' }), aPod({ cpu: '3', memory: '1Gi' })];
    expect(weigh(pods, [])).toEqual({ cpu: 1, memory: 2000 / GIB, isPriced: true });
    expect(weightOf({ cpuMilli: 2000, memoryBytes: GIB }, weigh(pods, []))).toBe(4000);
  });

  test('stay within reason where hardly any is asked for', () => {
    const gibPerCpu = (...pods: PodWish[]): number =>
      1000 / (weigh(pods.map(aPod), []).memory * GIB);
    expect(gibPerCpu({ cpu: '1' })).toBeCloseTo(0.25);
    expect(gibPerCpu({ cpu: '1', memory: '1Mi' })).toBeCloseTo(0.25);
    expect(gibPerCpu({ memory: '1Gi' })).toBeCloseTo(64);
    expect(gibPerCpu({ cpu: '1', memory: '8Gi' })).toBeCloseTo(8);
    expect(gibPerCpu()).toBeCloseTo(0.25);
  });

  test('prices count when all have one', () => {
    const priced = aPool({ sizes: [aSize('2x4', { price: 1 })] });
    expect(weigh([], [priced]).isPriced).toBe(true);
    expect(weigh([], [priced, aPool()]).isPriced).toBe(false);
    const range = { min: room(1, 1), max: room(2, 2), step: room(1, 1), reserved: room(0, 0) };
    expect(weigh([], [aPool({ sizes: range })]).isPriced).toBe(false);
  });
});
