// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { WakeSignal } from './work-queue.ts';

describe('WakeSignal', () => {
  it('stays aborted after wake, for present and later waiters, until reset', () => {
    const wakeSignal = new WakeSignal();
    const { signal } = wakeSignal;
    expect(signal.aborted).toBe(false);
    wakeSignal.wake();
    wakeSignal.wake();
    expect(signal.aborted).toBe(true);
    expect(wakeSignal.signal.aborted).toBe(true);
    wakeSignal.reset();
    expect(wakeSignal.signal.aborted).toBe(false);
    wakeSignal.reset();
    wakeSignal.wake();
    expect(wakeSignal.signal.aborted).toBe(true);
  });
});
