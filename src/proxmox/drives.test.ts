// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { formatDiskSize, parseDiskSize } from './vm-config.ts';

describe('disk sizes', () => {
  it('are in binary units and are rounded up', () => {
    expect(parseDiskSize('32G')).toBe(32 * 2 ** 30);
    expect(parseDiskSize('2252M')).toBe(2_252 * 2 ** 20);
    expect(parseDiskSize('1.5T')).toBe(1.5 * 2 ** 40);
    expect(parseDiskSize('512')).toBe(512);
    expect(parseDiskSize('10GB')).toBeUndefined();
    expect(formatDiskSize(20 * 2 ** 30)).toBe('20G');
    expect(formatDiskSize(20 * 2 ** 30 + 1)).toBe('20481M');
  });
});
