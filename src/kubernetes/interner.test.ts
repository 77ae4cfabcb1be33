// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Interner } from './interner.ts';

describe('Interner', () => {
  it('makes one of equal values, and keeps different ones apart', () => {
    const interner = new Interner();
    const first = interner.value({ app: 'a', tier: 'b' });
    expect(interner.value({ app: 'a', tier: 'b' })).toBe(first);
    expect(interner.value({ app: 'a' })).toEqual({ app: 'a' });
    expect(interner.value([{ app: 'a' }])).toEqual([{ app: 'a' }]);
    expect(interner.text('x')).toBe('x');
  });

  it('forgets rather than grow without end, and returns what it was given', () => {
    const interner = new Interner();
    const first = interner.value({ at: 0 });
    for (let at = 1; at < 20_000; at += 1) interner.value({ at });
    expect(interner.value({ at: 0 })).toBe(first);
    interner.value({ at: -1 });
    const again = { at: 0 };
    expect(interner.value(again)).toBe(again);
  });
});
