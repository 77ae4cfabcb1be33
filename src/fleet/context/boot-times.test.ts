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

  it('queries a guest first a little before the usual boot time, and moves earlier with each boot', () => {
    const times = new BootTimes();
    times.booted('workers', 20_000);
    expect(times.isDue('workers', 19_399)).toBe(false);
    expect(times.nextQueryMs('workers', 1_000)).toBe(18_400);
    expect(times.isDue('workers', 19_400)).toBe(true);
    times.booted('workers', 19_400);
    expect(times.isDue('workers', 0.97 * 19_400)).toBe(true);
  });

  it('stays above a query that came too early', () => {
    const times = new BootTimes();
    times.booted('workers', 20_000);
    times.notUp('workers', 19_400);
    for (let boot = 0; boot < 10; boot += 1) times.booted('workers', 20_600);
    expect(times.isDue('workers', 20_000)).toBe(false);
    expect(times.isDue('workers', 1.06 * 19_400)).toBe(true);
  });

  it('is not delayed for long by a guest that never boots', () => {
    const times = new BootTimes();
    times.booted('workers', 20_000);
    for (let minute = 1; minute < 30; minute += 1) times.notUp('workers', minute * 60_000);
    expect(times.isDue('workers', 1.06 * 22_000)).toBe(true);
  });

  it('follows boots that become faster', () => {
    const times = new BootTimes();
    times.booted('workers', 20_000);
    for (let boot = 0; boot < 30; boot += 1) times.booted('workers', 10_000);
    expect(times.isDue('workers', 10_000)).toBe(true);
  });

  it('learns the boot time of each pool separately', () => {
    const times = new BootTimes();
    times.booted('workers', 20_000);
    expect(times.isDue('gpu', 0)).toBe(true);
  });
});
