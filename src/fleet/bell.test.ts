// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Bell } from './bell.ts';

describe('a bell', () => {
  it('is heard by who waits, and by who comes later, until it is hushed', () => {
    const bell = new Bell();
    const { signal } = bell;
    expect(signal.aborted).toBe(false);
    bell.ring();
    bell.ring();
    expect(signal.aborted).toBe(true);
    expect(bell.signal.aborted).toBe(true);
    bell.hush();
    expect(bell.signal.aborted).toBe(false);
    bell.hush();
    bell.ring();
    expect(bell.signal.aborted).toBe(true);
  });
});
