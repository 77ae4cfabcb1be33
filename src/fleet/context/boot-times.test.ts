// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { BootTimes } from './polling.ts';

describe('BootTimes', () => {
  it('queries a guest at once while no boot time is known, then at growing intervals', () => {
    const times = new BootTimes();
    expect(times.isDue('workers', 0)).toBe(true);
    expect(times.nextQueryMs('workers', 0)).toBe(1_500);
    expect(times.nextQueryMs('workers', 100_000)).toBe(5_000);
  });

  it('does not query a guest before it can be up', () => {
    const times = new BootTimes();
    times.booted('workers', 20_000);
    expect(times.isDue('workers', 18_999)).toBe(false);
    expect(times.nextQueryMs('workers', 1_000)).toBe(18_000);
    expect(times.isDue('workers', 19_000)).toBe(true);
  });

  it('adapts at once to boots that become faster, and gradually to boots that become slower', () => {
    const times = new BootTimes();
    times.booted('workers', 20_000);
    times.booted('workers', 10_000);
    expect(times.isDue('workers', 9_500)).toBe(true);
    times.booted('workers', 20_000);
    expect(times.isDue('workers', 9_500)).toBe(false);
    expect(times.isDue('workers', 0.95 * 12_000)).toBe(true);
  });

  it('learns the boot time of each pool separately', () => {
    const times = new BootTimes();
    times.booted('workers', 20_000);
    expect(times.isDue('gpu', 0)).toBe(true);
  });
});
