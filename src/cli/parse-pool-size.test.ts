// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { parsePoolSize } from './parse-pool-size.ts';

const GIB = 2 ** 30;
const SMALL = { cpu: 1, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
const LARGE = { cpu: 4, memoryBytes: 8 * GIB, diskBytes: 80 * GIB };

const CHOICE = {
  name: 'workers',
  sizes: {
    kind: 'choice',
    sizes: [
      { name: 'small', ...SMALL },
      { name: undefined, ...LARGE },
    ],
  },
} as const;

const SPAN = {
  name: 'workers',
  sizes: { kind: 'span', min: SMALL, max: LARGE, stepCpu: 1, stepMemoryBytes: 2 * GIB },
} as const;

describe('parsePoolSize', () => {
  it.each([
    ['small', SMALL],
    ['cpu=4,memory=8Gi', LARGE],
    ['cpu=1', SMALL],
  ])('finds %s in a list of sizes', (text, size) => {
    expect(parsePoolSize(CHOICE, text)).toEqual(size);
  });

  it.each([
    ['cpu=2,memory=4Gi', { cpu: 2, memoryBytes: 4 * GIB, diskBytes: 20 * GIB }],
    ['memory=8Gi, disk=40Gi', { cpu: 1, memoryBytes: 8 * GIB, diskBytes: 40 * GIB }],
  ])('finds %s in a span of sizes', (text, size) => {
    expect(parsePoolSize(SPAN, text)).toEqual(size);
  });

  it.each([
    ['large', 'pool workers has no size large; it has small, cpu=4,memory=8192Mi'],
    ['cpu=2', 'pool workers has no size cpu=2; it has small, cpu=4,memory=8192Mi'],
    ['cores=2', '--size cores=2 is none of cpu=N, memory=SIZE, disk=SIZE'],
    ['cpu=two', '--size cpu=two is none of cpu=N, memory=SIZE, disk=SIZE'],
  ])('rejects %s and lists the sizes of the pool', (text, message) => {
    expect(() => parsePoolSize(CHOICE, text)).toThrow(message);
  });

  it.each(['cpu=5', 'memory=3Gi', 'disk=100Gi', 'small', 'memory=1Gi'])(
    'rejects %s and names both ends of the span',
    (text) => {
      expect(() => parsePoolSize(SPAN, text)).toThrow(
        /it has all from cpu=1,memory=2048Mi to cpu=4,memory=8192Mi/,
      );
    },
  );
});
