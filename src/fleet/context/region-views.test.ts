// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';

import { Cancelled, Unauthorized, Unreachable } from '../../ports/errors.ts';

import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { aTestFleet } from '../testing/test-fleet.ts';
import { DriverState } from './driver-state.ts';
import { isStorageShared, readRegionViews, recentRegionViews } from './region-views.ts';

const MINUTE_MS = 60_000;

describe('readRegionViews', () => {
  it.each([
    [MINUTE_MS, {}],
    [MINUTE_MS + 1, { memory: 'its view is too old' }],
  ])('a view that is %d ms old is usable up to one minute', async (ageMs, expected) => {
    const { clock, hypervisor } = aTestFleet();
    const seen = await hypervisor.view();
    hypervisor.view = () => Promise.resolve({ ...seen, takenAt: clock.now() - ageMs });
    const hypervisors = new Map([['memory', hypervisor]]);
    const { views, stale } = await readRegionViews({ hypervisors, clock });
    expect(stale).toEqual(expected);
    expect([...views.keys(), ...Object.keys(stale)]).toEqual(['memory']);
  });
});

describe('recentRegionViews', () => {
  it('reuses views that are recent, and reads them again when they are old, even after the wall clock was set back', async () => {
    const testFleet = aJoiningTestFleet();
    const { clock, hypervisor } = testFleet;
    const options = { ...testFleet, hypervisors: new Map([['memory', hypervisor]]) } as never;
    const state = new DriverState();
    const recent = () => recentRegionViews(options, { viewAgeMs: 2_000 }, state.regionReadings);
    const view = async () => (await recent()).views.get('memory');
    const first = await view();
    expect(first).toBeDefined();
    expect(await view()).toBe(first);
    clock.setWallClock(clock.now() - 60 * MINUTE_MS);
    await clock.advance(MINUTE_MS);
    expect(await view()).not.toBe(first);
  });

  it('waits a moment for a region that does not answer, returns the others, and uses its view when it has answered', async () => {
    const testFleet = aJoiningTestFleet();
    const { clock, hypervisor } = testFleet;
    let answer = () => {};
    const slow = new Proxy(hypervisor, {
      get: (target, name) =>
        name === 'view'
          ? () => new Promise((resolve) => (answer = () => resolve(target.view())))
          : Reflect.get(target, name),
    });
    const hypervisors = new Map([
      ['memory', hypervisor],
      ['slow', slow],
    ]);
    const state = new DriverState();
    const recent = () =>
      recentRegionViews({ clock, hypervisors }, { viewAgeMs: 2_000 }, state.regionReadings);
    const first = await advanceUntilSettled(clock, recent());
    expect([...first.views.keys()]).toEqual(['memory']);
    expect(first.stale).toEqual({ slow: 'it has not answered for 2 s' });
    answer();
    const second = await advanceUntilSettled(clock, recent());
    expect([...second.views.keys()]).toEqual(['memory', 'slow']);
  });

  it.each(['CREDENTIALS_REFUSED', 'TLS_NOT_TRUSTED'] as const)(
    'reads a region that answers %s after pauses that double from 2 s to a minute, and the others as usual',
    async (code) => {
      const { clock, hypervisor } = aTestFleet();
      const reads: number[] = [];
      let isRefused = true;
      const refusing = new Proxy(hypervisor, {
        get: (target, name) =>
          name === 'view'
            ? () => {
                reads.push(clock.monotonic());
                return isRefused ? Promise.reject(new Unauthorized(code, 'no')) : target.view();
              }
            : Reflect.get(target, name),
      });
      const hypervisors = new Map([
        ['memory', hypervisor],
        ['refusing', refusing],
      ]);
      const state = new DriverState();
      const recent = () => recentRegionViews({ clock, hypervisors }, {}, state.regionReadings);
      for (let second = 0; second < 200; second += 1) {
        const { views, errors } = await recent();
        expect([...views.keys()]).toEqual(['memory']);
        expect(errors['refusing']).toMatchObject({ code });
        await clock.advance(1_000);
      }
      const pauses = reads.slice(1).map((at, index) => at - reads[index]!);
      expect(pauses).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
      isRefused = false;
      await clock.advance(60_000);
      expect((await recent()).views.has('refusing')).toBe(true);
      isRefused = true;
      await clock.advance(1_000);
      await recent();
      await clock.advance(2_000);
      await recent();
      expect(reads.at(-1)! - reads.at(-2)!).toBe(2_000);
    },
  );
});

describe('recentRegionViews: a region that cannot be read', () => {
  function oneRegion() {
    const { clock, hypervisor } = aTestFleet();
    const state = new DriverState();
    const regions = { clock, hypervisors: new Map([['memory', hypervisor]]) };
    const recent = (viewAgeMs?: number) =>
      recentRegionViews(
        regions,
        viewAgeMs === undefined ? {} : { viewAgeMs },
        state.regionReadings,
      );
    const reads = () => hypervisor.calls.filter(({ method }) => method === 'view').length;
    return { clock, hypervisor, recent, reads };
  }

  it('has no view and the reason, and is read again by the next pass although its last view is recent', async () => {
    const { hypervisor, recent, reads } = oneRegion();
    await recent(60_000);
    hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'connection refused'));
    const failed = await recent();
    expect(failed.views.size).toBe(0);
    expect(failed.stale).toEqual({ memory: 'connection refused' });
    const again = await recent(60_000);
    expect([...again.views.keys()]).toEqual(['memory']);
    expect(reads()).toBe(3);
  });

  it('is read in every pass if no age is given', async () => {
    const { clock, recent, reads } = oneRegion();
    await recent();
    await clock.advance(1);
    await recent();
    expect(reads()).toBe(2);
  });

  it('is read again once its view has the given age', async () => {
    const { clock, recent, reads } = oneRegion();
    await recent(2_000);
    await clock.advance(1_999);
    await recent(2_000);
    expect(reads()).toBe(1);
    await clock.advance(1);
    await recent(2_000);
    expect(reads()).toBe(2);
  });

  it('uses the last view for ten seconds while it is being read, and reads it once', async () => {
    const { clock, hypervisor, recent } = oneRegion();
    await recent();
    let reads = 0;
    hypervisor.view = () => {
      reads += 1;
      return new Promise(() => {});
    };
    await clock.advance(7_000);
    const first = await advanceUntilSettled(clock, recent());
    expect(first.stale).toEqual({});
    await clock.advance(1_000);
    const second = await advanceUntilSettled(clock, recent());
    expect(second.stale).toEqual({ memory: 'it has not answered for 5 s' });
    expect(reads).toBe(1);
  });

  it.each([new Cancelled('CANCELLED', 'stopped'), new TypeError('a bug')])(
    'is not what %s means',
    async (thrown) => {
      const { hypervisor, recent } = oneRegion();
      hypervisor.view = () => Promise.reject(thrown);
      await expect(recent()).rejects.toBe(thrown);
    },
  );
});

describe('isStorageShared', () => {
  it.each([
    ['pve1', 'seeds', true],
    ['pve1', 'local', false],
    ['pve1', 'unknown', false],
    ['unknown', 'seeds', false],
  ])('host %s, storage %s: %s', async (host, storage, isShared) => {
    const { hypervisor } = aTestFleet();
    expect(isStorageShared(await hypervisor.view(), host, storage)).toBe(isShared);
  });
});
