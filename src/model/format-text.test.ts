// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { formatAge, formatBytes, formatCount } from './format-text.ts';

describe('formatAge', () => {
  it.each([
    [-5, '0s'],
    [0, '0s'],
    [59_999, '59s'],
    [119_000, '119s'],
    [120_000, '2m'],
    [185_000, '3m5s'],
    [11 * 60_000 + 5_000, '11m'],
    [3 * 3_600_000, '3h'],
    [3 * 3_600_000 + 120_000, '3h2m'],
    [50 * 3_600_000, '2d2h'],
    [100 * 86_400_000, '100d'],
  ])('formats %d ms as %s', (ms, text) => {
    expect(formatAge(ms)).toBe(text);
  });
});

describe('formatBytes', () => {
  it.each([
    [4 * 2 ** 30, '4 GiB'],
    [1.5 * 2 ** 30, '1.5 GiB'],
    [512 * 2 ** 20, '512 MiB'],
  ])('formats %d bytes as %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe('formatCount', () => {
  it('uses the singular for one only', () => {
    expect([0, 1, 2].map((count) => formatCount(count, 'VM'))).toEqual(['0 VMs', '1 VM', '2 VMs']);
  });
});
