// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Interner } from './interner.ts';

describe('Interner', () => {
  it('returns one instance for equal values and separate instances for different ones', () => {
    const interner = new Interner();
    const first = interner.intern({ app: 'a', tier: 'b' });
    expect(interner.intern({ app: 'a', tier: 'b' })).toBe(first);
    expect(interner.intern({ app: 'a' })).toEqual({ app: 'a' });
    expect(interner.intern([{ app: 'a' }])).toEqual([{ app: 'a' }]);
    expect(interner.internText('x')).toBe('x');
  });

  it('drops its table at the size limit and then returns the given value', () => {
    const interner = new Interner();
    const first = interner.intern({ at: 0 });
    for (let at = 1; at < 20_000; at += 1) interner.intern({ at });
    expect(interner.intern({ at: 0 })).toBe(first);
    interner.intern({ at: -1 });
    const again = { at: 0 };
    expect(interner.intern(again)).toBe(again);
  });
});
