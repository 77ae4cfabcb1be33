// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Fillings,
  fillOneByOne,
  firstFit,
  podsInside,
  type Shape,
  smallestAmounts,
} from './first-fit.ts';

const CAPACITY = [40, 60];
const SHAPES = fc.array(
  fc.record({
    amounts: fc.tuple(fc.integer({ min: 0, max: 45 }), fc.integer({ min: 1, max: 65 })),
    pods: fc.integer({ min: 1, max: 12 }),
  }),
  { minLength: 1, maxLength: 8 },
);

function fitsIn(amounts: readonly number[], free: readonly number[]): boolean {
  return amounts.every((amount, i) => amount <= (free[i] ?? 0));
}

/** What is left in each machine, pod by pod. */
function oneByOne(shapes: readonly Shape[]): readonly (readonly number[])[] | undefined {
  const machines: number[][] = [];
  for (const { amounts, pods } of shapes) {
    for (let i = 0; i < pods; i += 1) {
      let machine = machines.find((free) => fitsIn(amounts, free));
      if (machine === undefined) {
        machine = [...CAPACITY];
        if (!fitsIn(amounts, machine)) return undefined;
        machines.push(machine);
      }
      for (const [resource, amount] of amounts.entries())
        machine[resource] = (machine[resource] ?? 0) - amount;
    }
  }
  return machines;
}

function sorted(machines: readonly (readonly number[])[]): readonly string[] {
  return machines.map((free) => free.join()).sort();
}

function eachMachine({ fillings }: Fillings<Shape>): readonly (readonly number[])[] {
  return fillings.flatMap(({ machines, free }) => Array.from({ length: machines }, () => free));
}

function expectAllPods({ fillings }: Fillings<Shape>, shapes: readonly Shape[]): void {
  const counts = new Map<Shape, number>(shapes.map((shape) => [shape, 0]));
  for (const filling of fillings) {
    const used = CAPACITY.map(() => 0);
    for (const [shape, count] of podsInside(filling)) {
      counts.set(shape, (counts.get(shape) ?? 0) + count * filling.machines);
      for (const [i, amount] of shape.amounts.entries()) used[i] = (used[i] ?? 0) + count * amount;
    }
    expect(filling.free).toEqual(CAPACITY.map((amount, i) => amount - (used[i] ?? 0)));
    expect(Math.min(...filling.free)).toBeGreaterThanOrEqual(0);
  }
  for (const [shape, count] of counts) expect(count).toBe(shape.pods);
}

describe('firstFit', () => {
  test('leaves the same space in each machine as placing the pods one by one', () => {
    fc.assert(
      fc.property(SHAPES, (shapes) => {
        const order = shapes.map((shape) => ({ shape, pods: shape.pods }));
        const found = firstFit(order, CAPACITY, smallestAmounts(shapes));
        const expected = oneByOne(shapes);
        expect(found && sorted(eachMachine(found))).toEqual(expected && sorted(expected));
        if (found !== undefined) expectAllPods(found, shapes);
      }),
    );
  });

  test('fills equal machines together', () => {
    const shape = { amounts: [10, 10], pods: 4000 };
    const found = firstFit([{ shape, pods: 4000 }], CAPACITY, [10, 10]);
    expect(found?.fillings).toMatchObject([{ machines: 1000, free: [0, 20] }]);
  });
});

describe('fillOneByOne', () => {
  test('places every pod, unless one is larger than the capacity', () => {
    fc.assert(
      fc.property(SHAPES, (shapes) => {
        const found = fillOneByOne(shapes, CAPACITY);
        expect(found !== undefined).toBe(shapes.every(({ amounts }) => fitsIn(amounts, CAPACITY)));
        if (found !== undefined) expectAllPods(found, shapes);
      }),
    );
  });

  test('combines pods that use different resources', () => {
    const shapes = [
      { amounts: [30, 10], pods: 2 },
      { amounts: [10, 50], pods: 2 },
    ];
    expect(fillOneByOne(shapes, CAPACITY)?.fillings).toMatchObject([{ machines: 2, free: [0, 0] }]);
  });
});
