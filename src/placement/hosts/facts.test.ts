// SPDX-License-Identifier: Apache-2.0

import { describe, expect, it } from 'vitest';
import { formatCount } from '../../model/format-text.ts';
import { countFits, formatFreeBytes, formatNeededBytes } from './facts.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

describe('sizes in reasons', () => {
  it('are in GiB from 1 GiB on, else in MiB', () => {
    expect(formatFreeBytes(GIB)).toBe('1 GiB');
    expect(formatFreeBytes(GIB - MIB)).toBe('1023 MiB');
    expect(formatNeededBytes(GIB)).toBe('1 GiB');
  });

  it('never show the same text for what is free and what is needed unless it fits', () => {
    expect(formatFreeBytes(2.09 * GIB)).toBe('2 GiB');
    expect(formatNeededBytes(2.09 * GIB)).toBe('2.1 GiB');
    expect(formatFreeBytes(-1)).toBe('0 MiB');
  });

  it('have a plural except for one', () => {
    expect([0, 1, 2].map((count) => formatCount(count, 'host'))).toEqual([
      '0 hosts',
      '1 host',
      '2 hosts',
    ]);
  });
});

describe('countFits', () => {
  it('counts how many times a need fits', () => {
    expect(countFits(10, 3)).toBe(3);
    expect(countFits(9, 3)).toBe(3);
    expect(countFits(0, 3)).toBe(0);
    expect(countFits(-1, 3)).toBe(0);
    expect(countFits(-1, 0)).toBe(0);
    expect(countFits(0, 0)).toBe(Number.POSITIVE_INFINITY);
  });
});
