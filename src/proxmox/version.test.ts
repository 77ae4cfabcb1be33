// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { isAtLeast } from './version.ts';

describe('isAtLeast', () => {
  it('compares major and minor as numbers', () => {
    expect(isAtLeast('8.4.1', '8.4')).toBe(true);
    expect(isAtLeast('8.10', '8.4')).toBe(true);
    expect(isAtLeast('9.0~beta2', '8.4')).toBe(true);
    expect(isAtLeast('8.3.5', '8.4')).toBe(false);
    expect(isAtLeast('7.4', '8.2')).toBe(false);
  });
});
