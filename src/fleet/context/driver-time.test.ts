// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { DriverTime } from './driver-time.ts';

describe('DriverTime', () => {
  it('counts from the recorded time, and then on the monotonic clock', async () => {
    const clock = new VirtualClock();
    const time = new DriverTime(Number.POSITIVE_INFINITY);
    const since = clock.now() - 10_000;
    expect(time.elapsedMs('a', since, clock)).toBe(10_000);
    clock.setWallClock(clock.now() + 3_600_000);
    await clock.advance(2_000);
    expect(time.elapsedMs('a', since, clock)).toBe(12_000);
    clock.setWallClock(clock.now() - 7_200_000);
    expect(time.elapsedMs('a', since, clock)).toBe(12_000);
  });

  it('does not count the time since the end of the driver before', async () => {
    const clock = new VirtualClock();
    const since = clock.now();
    await clock.advance(60_000);
    const time = new DriverTime(since + 20_000);
    expect(time.elapsedMs('a', since, clock)).toBe(20_000);
    expect(time.elapsedMs('b', since + 30_000, clock)).toBe(0);
  });

  it('counts a new time of the same key from that time', async () => {
    const clock = new VirtualClock();
    const time = new DriverTime(Number.POSITIVE_INFINITY);
    const since = clock.now();
    time.elapsedMs('a', since, clock);
    await clock.advance(60_000);
    expect(time.elapsedMs('a', since + 50_000, clock)).toBe(10_000);
    time.forget('a');
    expect(time.elapsedMs('a', since, clock)).toBe(60_000);
  });

  it('corrects a recorded time that differs by more than five seconds, once', async () => {
    const clock = new VirtualClock();
    const time = new DriverTime(Number.POSITIVE_INFINITY);
    const since = clock.now();
    expect(time.corrected('a', since, clock)).toBeUndefined();
    time.elapsedMs('a', since, clock);
    await clock.advance(10_000);
    expect(time.corrected('a', since, clock)).toBeUndefined();
    clock.setWallClock(clock.now() + 5_000);
    expect(time.corrected('a', since, clock)).toBeUndefined();
    clock.setWallClock(clock.now() + 1);
    const corrected = since + 5_001;
    expect(time.corrected('a', since + 1, clock)).toBeUndefined();
    expect(time.corrected('a', since, clock)).toBe(corrected);
    time.replaceSince('a', corrected);
    expect(time.corrected('a', corrected, clock)).toBeUndefined();
    expect(time.elapsedMs('a', corrected, clock)).toBe(10_000);
  });
});
