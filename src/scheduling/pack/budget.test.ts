// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { resourcesOf } from '../testing/offers.ts';
import { Budget, machineGrowth, sizeGrowth } from './budget.ts';

const GIB = 2 ** 30;

describe('Budget', () => {
  test('is never exceeded without limits', () => {
    const budget = new Budget('pool', {});
    expect(budget.isLimited).toBe(false);
    expect(budget.findExceededLimit(machineGrowth(resourcesOf(1000, 1000)))).toBeUndefined();
  });

  test.each([
    [{ machines: 1 }, 'machines', 1, 1, 1],
    [{ cpuMilli: 7000 }, 'cpu', 7000, 4000, 4000],
    [{ memoryBytes: 15 * GIB }, 'memory', 15 * GIB, 8 * GIB, 8 * GIB],
  ] as const)(
    'with %j is exceeded by the second machine',
    (...[limits, limit, allowed, used, adding]) => {
      const budget = new Budget('pool', limits);
      expect(budget.isLimited).toBe(true);
      const machine = machineGrowth(resourcesOf(4, 8));
      expect(budget.findExceededLimit(machine)).toBeUndefined();
      budget.consume(machine);
      expect(budget.findExceededLimit(machine)).toEqual({
        of: 'pool',
        limit,
        allowed,
        used,
        adding,
      });
    },
  );

  test('may be used up completely', () => {
    const budget = new Budget('pool', { machines: 2, cpuMilli: 8000, memoryBytes: 16 * GIB });
    budget.consume(machineGrowth(resourcesOf(4, 8)));
    expect(budget.findExceededLimit(machineGrowth(resourcesOf(4, 8)))).toBeUndefined();
    expect(budget.findExceededLimit(machineGrowth(resourcesOf(4.001, 8)))).toMatchObject({
      limit: 'cpu',
    });
    expect(budget.findExceededLimit(machineGrowth(resourcesOf(4, 9)))).toMatchObject({
      limit: 'memory',
    });
  });

  test('counts growth without counting a machine', () => {
    const budget = new Budget('pool', { machines: 1, cpuMilli: 8000 });
    budget.consume(machineGrowth(resourcesOf(4, 8)));
    expect(sizeGrowth(resourcesOf(4, 8), resourcesOf(6, 16))).toEqual({
      machines: 0,
      cpuMilli: 2000,
      memoryBytes: 8 * GIB,
      diskBytes: 0,
    });
    expect(
      budget.findExceededLimit(sizeGrowth(resourcesOf(4, 8), resourcesOf(8, 8))),
    ).toBeUndefined();
    expect(
      budget.findExceededLimit(sizeGrowth(resourcesOf(4, 8), resourcesOf(9, 8))),
    ).toMatchObject({
      used: 4000,
      adding: 5000,
    });
    // Shrinking is always allowed, even above the limit.
    budget.consume(sizeGrowth(resourcesOf(4, 8), resourcesOf(20, 8)));
    expect(
      budget.findExceededLimit(sizeGrowth(resourcesOf(8, 8), resourcesOf(4, 8))),
    ).toBeUndefined();
    expect(
      budget.findExceededLimit(sizeGrowth(resourcesOf(8, 8), resourcesOf(8, 16))),
    ).toBeUndefined();
  });
});
