// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { NEVER } from '../context/driver-lease.ts';
import { REGION } from '../testing/settings.ts';
import { aTestFleet } from '../testing/test-fleet.ts';
import { CapacityForecast, type Headroom } from './capacity-forecast.ts';
import { ReportedForecast } from './reported-forecast.ts';

const HEADROOM: Headroom = { machines: 3, countedAt: 5, waiting: new Set(), reason: undefined };

async function aFilledForecast() {
  const view = await aTestFleet().hypervisor.view();
  const forecast = new CapacityForecast();
  const driver = { isHeld: true, mayAct: () => driver.isHeld, until: () => deadline };
  const deadline = { wall: 1_000, monotonic: 50 };
  forecast.beginTerm(driver);
  forecast.setViews(new Map([[REGION, view]]), { other: 'no route' });
  forecast.setAdopted([REGION]);
  forecast.setHeadroom('workers', HEADROOM);
  return { forecast, driver, view, deadline };
}

describe('CapacityForecast', () => {
  it('returns what the last pass read, and is complete only while the driver may act', async () => {
    const { forecast, driver, view } = await aFilledForecast();
    expect(forecast.takenAt(REGION)).toBe(view.takenAt);
    expect(forecast.takenAt('other')).toBeUndefined();
    expect(forecast.readError('other')).toBe('no route');
    expect([9_001, 1].map((vmId) => forecast.hasVm(REGION, vmId))).toEqual([true, false]);
    expect(forecast.hasVm('other', 9_001)).toBe(false);
    expect(forecast.headroom('workers')).toBe(HEADROOM);
    expect([REGION, 'other'].map((region) => forecast.isComplete(region))).toEqual([true, false]);
    driver.isHeld = false;
    expect(forecast.isComplete(REGION)).toBe(false);
  });

  it('forgets the error of a region that was read again', async () => {
    const { forecast, view } = await aFilledForecast();
    forecast.setViews(new Map([['other', view]]), {});
    expect(forecast.readError('other')).toBeUndefined();
  });

  it.each(['beginTerm', 'endTerm'] as const)('forgets everything at %s', async (method) => {
    const { forecast, driver } = await aFilledForecast();
    forecast.forecastAt = 7;
    forecast[method](driver);
    expect(forecast.report()).toMatchObject({ regions: {}, headrooms: {} });
    expect(forecast.isComplete(REGION)).toBe(false);
    expect(forecast.forecastAt).toBe(Number.NEGATIVE_INFINITY);
  });

  it('keeps everything when the term of another driver ends', async () => {
    const { forecast } = await aFilledForecast();
    forecast.endTerm({ mayAct: () => true, until: () => NEVER });
    expect(forecast.headroom('workers')).toBe(HEADROOM);
  });

  it('notifies its listener of each change', async () => {
    const { forecast, driver, view } = await aFilledForecast();
    let changes = 0;
    forecast.onChange(() => {
      changes += 1;
    });
    forecast.setViews(new Map([[REGION, view]]), {});
    forecast.setAdopted([]);
    forecast.notify();
    forecast.beginTerm(driver);
    forecast.endTerm(driver);
    expect(changes).toBe(5);
  });

  it('never expires without a driver', () => {
    expect(new CapacityForecast().report().until).toBe(NEVER);
  });
});

describe('ReportedForecast', () => {
  it('returns what was reported, and is complete until the end of the lease', async () => {
    const { forecast, view } = await aFilledForecast();
    const clock = { wall: 999, now: () => clock.wall, monotonic: () => 49 };
    const reported = new ReportedForecast(clock);
    expect(reported.isComplete(REGION)).toBe(false);
    expect(reported.hasVm(REGION, 9_001)).toBe(false);
    expect(reported.headroom('workers')).toBeUndefined();
    reported.set(forecast.report());
    expect(reported.takenAt(REGION)).toBe(view.takenAt);
    expect(reported.readError('other')).toBe('no route');
    expect([9_001, 1].map((vmId) => reported.hasVm(REGION, vmId))).toEqual([true, false]);
    expect(reported.hasVm('unknown', 9_001)).toBe(false);
    const complete = [REGION, 'other', 'unknown'].map((region) => reported.isComplete(region));
    expect(complete).toEqual([true, false, false]);
    clock.wall = 1_000;
    expect(reported.isComplete(REGION)).toBe(false);
  });

  it('keeps the same headroom until it is computed again, and forgets that of a missing pool', async () => {
    const { forecast } = await aFilledForecast();
    const reported = new ReportedForecast({ now: () => 0, monotonic: () => 0 });
    reported.set(forecast.report());
    const first = reported.headroom('workers');
    const copy = { ...HEADROOM };
    reported.set({ ...forecast.report(), headrooms: { workers: copy } });
    expect(reported.headroom('workers')).toBe(first);
    const newer = { ...HEADROOM, countedAt: 6 };
    reported.set({ ...forecast.report(), headrooms: { workers: newer } });
    expect(reported.headroom('workers')).toBe(newer);
    reported.set({ ...forecast.report(), headrooms: {} });
    expect(reported.headroom('workers')).toBeUndefined();
  });
});
