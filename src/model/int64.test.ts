// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { readInt64 } from './int64.ts';

test.each([
  ['0', 0n],
  ['-0', 0n],
  ['+5', 5n],
  ['-5', -5n],
  ['007', 7n],
  ['9223372036854775807', 2n ** 63n - 1n],
  ['-9223372036854775808', -(2n ** 63n)],
])('reads %s as %d', (text, value) => {
  expect(readInt64(text)).toBe(value);
});

const OTHERS = '|-|+|+-1|1.0|1e3|0x10|1_000| 1|1\n|１|9223372036854775808|-9223372036854775809';

test.each(OTHERS.split('|'))("reads '%s' as undefined", (text) => {
  expect(readInt64(text)).toBeUndefined();
});
