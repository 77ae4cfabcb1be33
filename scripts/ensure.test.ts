// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
// @ts-expect-error plain JavaScript: it runs before anything is installed
import { whyInstall } from './ensure.mjs';

const lock = {
  packages: {
    '': {},
    'node_modules/a': { version: '1.0.0' },
    'node_modules/b-other-platform': { version: '2.0.0', optional: true },
  },
};

describe('whyInstall', () => {
  it.each([
    ['a fresh clone', undefined, 'node_modules is missing'],
    ['a missing package', { packages: {} }, 'node_modules/a is not installed'],
    [
      'a changed lock',
      { packages: { 'node_modules/a': { version: '0.9.0' } } },
      'node_modules/a is 0.9.0, not 1.0.0',
    ],
    ['everything in place', { packages: { 'node_modules/a': { version: '1.0.0' } } }, undefined],
    [
      'the binary of another platform in another version',
      {
        packages: {
          'node_modules/a': { version: '1.0.0' },
          'node_modules/b-other-platform': { version: '1.0.0' },
        },
      },
      'node_modules/b-other-platform is 1.0.0, not 2.0.0',
    ],
  ])('returns the reason for %s', (_case, installed, why) => {
    expect(whyInstall(lock, installed)).toBe(why);
  });
});
