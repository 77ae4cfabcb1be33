// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { defaultSize } from './pool-size.ts';

const GIB = 2 ** 30;
const SMALL = { cpu: 1, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
const LARGE = { cpu: 4, memoryBytes: 8 * GIB, diskBytes: 80 * GIB };

it('takes the first of a list of sizes as the default', () => {
  const sizes = [
    { name: 'small', ...SMALL },
    { name: undefined, ...LARGE },
  ];
  expect(defaultSize({ size: { kind: 'choice', sizes } })).toEqual(SMALL);
});

it('takes the smallest of a span of sizes as the default', () => {
  const span = { min: SMALL, max: LARGE, stepCpu: 1, stepMemoryBytes: 2 * GIB };
  expect(defaultSize({ size: { kind: 'span', ...span } })).toEqual(SMALL);
});
