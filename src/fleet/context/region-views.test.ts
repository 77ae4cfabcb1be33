// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { DriverState } from './driver-state.ts';
import { recentRegionViews } from './region-views.ts';

const MINUTE_MS = 60_000;

describe('recentRegionViews', () => {
  it('reuses views that are recent, and reads them again when they are old, even after the wall clock was set back', async () => {
    const testFleet = aJoiningTestFleet();
    const { clock, hypervisor } = testFleet;
    const options = { ...testFleet, hypervisors: new Map([['memory', hypervisor]]) } as never;
    const state = new DriverState();
    const recent = () => recentRegionViews(options, { viewAgeMs: 2_000 }, state);
    const first = await recent();
    expect(await recent()).toBe(first);
    clock.setWallClock(clock.now() - 60 * MINUTE_MS);
    await clock.advance(MINUTE_MS);
    expect(await recent()).not.toBe(first);
  });
});
