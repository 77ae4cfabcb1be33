// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { DriverRegistry, isBefore, NEVER, PAST } from './driver-lease.ts';

describe('isBefore', () => {
  const clock = { now: () => 1_000, monotonic: () => 50 };

  it.each([
    [{ wall: 1_001, monotonic: 51 }, true],
    [{ wall: 1_000, monotonic: 51 }, false],
    [{ wall: 1_001, monotonic: 50 }, false],
    [NEVER, true],
    [PAST, false],
  ])('a deadline is over as soon as one of its clocks has reached it: %o', (deadline, expected) => {
    expect(isBefore(deadline, clock)).toBe(expected);
  });
});

describe('DriverRegistry', () => {
  it('may act only while a holder is registered that may act', () => {
    const registry = new DriverRegistry(new VirtualClock());
    const holder = { mayAct: () => true };
    const other = { mayAct: () => false };
    expect(registry.mayAct()).toBe(false);
    registry.begin(holder);
    expect(registry.mayAct()).toBe(true);
    registry.end(other);
    expect(registry.mayAct()).toBe(true);
    registry.begin(other);
    expect(registry.mayAct()).toBe(false);
    registry.end(other);
    expect(registry.mayAct()).toBe(false);
  });

  it('a request may take effect while it runs, and for its maximum time if its outcome is unknown', async () => {
    const clock = new VirtualClock();
    const registry = new DriverRegistry(clock);
    expect(registry.unsettledMs(5_000)).toBe(0);
    const endFirst = registry.beginRequest();
    const endSecond = registry.beginRequest();
    expect(registry.unsettledMs(5_000)).toBe(5_000);
    endFirst('settled');
    expect(registry.unsettledMs(5_000)).toBe(5_000);
    endSecond('settled');
    expect(registry.unsettledMs(5_000)).toBe(0);
    registry.beginRequest()('unknown');
    await clock.advance(2_000);
    expect(registry.unsettledMs(5_000)).toBe(3_000);
    await clock.advance(4_000);
    expect(registry.unsettledMs(5_000)).toBe(0);
  });
});
