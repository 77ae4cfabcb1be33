// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { History } from './history.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const MIDNIGHT = 24 * HOUR * 20_000;

function sampleAt(at: number) {
  return {
    at,
    pending: 0,
    nodes: 0,
    requestedCpu: 0,
    allocatableCpu: 0,
    requestedMemory: 0,
    allocatableMemory: 0,
  };
}

describe('the history of a process', () => {
  it('keeps every sample of five minutes, then one of 20 seconds for half an hour and of five minutes for a day', () => {
    const history = new History();
    for (let at = MIDNIGHT; at <= MIDNIGHT + 30 * HOUR; at += 5_000) history.add(sampleAt(at));
    const ages = history.samples.map(({ at }) => MIDNIGHT + 30 * HOUR - at);
    expect(ages.filter((age) => age <= 5 * MINUTE)).toHaveLength(61);
    expect(ages.filter((age) => age <= 30 * MINUTE)).toHaveLength(61 + 75);
    expect(ages.length).toBeLessThan(136 + 290);
    expect(Math.max(...ages)).toBeGreaterThan(23 * HOUR);
  });

  it('forgets samples of a clock that was ahead', () => {
    const history = new History();
    history.add(sampleAt(MIDNIGHT + HOUR));
    history.add(sampleAt(MIDNIGHT));
    expect(history.samples).toEqual([sampleAt(MIDNIGHT)]);
  });

  it('adds up costs since midnight, without times that it has not seen', () => {
    const history = new History();
    const prices = new Map([['workers', 6]]);
    const start = MIDNIGHT - 30_000;
    history.addCost(prices, start);
    history.addCost(prices, start + 20_000);
    expect(history.costToday('workers')).toBeCloseTo(6 / 180);
    history.addCost(prices, MIDNIGHT + 10_000);
    expect(history.costToday('workers')).toBeCloseTo((6 * 20) / 3_600);
    history.addCost(prices, MIDNIGHT + 2 * HOUR);
    expect(history.costToday('workers')).toBeCloseTo((6 * 20) / 3_600);
    expect(history.costToday('other')).toBe(0);
  });
});
