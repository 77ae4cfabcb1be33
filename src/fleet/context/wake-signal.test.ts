// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { WakeSignal } from './wake-signal.ts';

describe('a bell', () => {
  it('is heard by who waits, and by who comes later, until it is hushed', () => {
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
