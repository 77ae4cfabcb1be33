// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { room } from '../testing/offers.ts';
import { Budget, enlargement, newMachine } from './budget.ts';

const GIB = 2 ** 30;

describe('a budget', () => {
  test('without limits is never hit', () => {
    const budget = new Budget('pool', {});
    expect(budget.isLimited).toBe(false);
    expect(budget.hit(newMachine(room(1000, 1000)))).toBeUndefined();
  });

  test.each([
    [{ machines: 1 }, 'machines', 1, 1, 1],
    [{ cpuMilli: 7000 }, 'cpu', 7000, 4000, 4000],
    [{ memoryBytes: 15 * GIB }, 'memory', 15 * GIB, 8 * GIB, 8 * GIB],
  ] as const)('%j is hit by the second machine', (...[limits, limit, allowed, used, adding]) => {
    const budget = new Budget('pool', limits);
    expect(budget.isLimited).toBe(true);
    const machine = newMachine(room(4, 8));
    expect(budget.hit(machine)).toBeUndefined();
    budget.take(machine);
    expect(budget.hit(machine)).toEqual({ of: 'pool', limit, allowed, used, adding });
  });

  test('may be used to the last', () => {
    const budget = new Budget('pool', { machines: 2, cpuMilli: 8000, memoryBytes: 16 * GIB });
    budget.take(newMachine(room(4, 8)));
    expect(budget.hit(newMachine(room(4, 8)))).toBeUndefined();
    expect(budget.hit(newMachine(room(4.001, 8)))).toMatchObject({ limit: 'cpu' });
    expect(budget.hit(newMachine(room(4, 9)))).toMatchObject({ limit: 'memory' });
  });

  test('growth counts what is added, and takes no machine', () => {
    const budget = new Budget('pool', { machines: 1, cpuMilli: 8000 });
    budget.take(newMachine(room(4, 8)));
    expect(enlargement(room(4, 8), room(6, 16))).toEqual({
      machines: 0,
      cpuMilli: 2000,
      memoryBytes: 8 * GIB,
    });
    expect(budget.hit(enlargement(room(4, 8), room(8, 8)))).toBeUndefined();
    expect(budget.hit(enlargement(room(4, 8), room(9, 8)))).toMatchObject({
      used: 4000,
      adding: 5000,
    });
    // What shrinks is never too much, even when too much is used already.
    budget.take(enlargement(room(4, 8), room(20, 8)));
    expect(budget.hit(enlargement(room(8, 8), room(4, 8)))).toBeUndefined();
    expect(budget.hit(enlargement(room(8, 8), room(8, 16)))).toBeUndefined();
  });
});
