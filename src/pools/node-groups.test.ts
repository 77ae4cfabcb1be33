// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { aPoolConfig } from '../config/types/testing/sample-pool.ts';
import { nodeGroupsOf } from './node-groups.ts';

const GIB = 2 ** 30;

const size = fc.record({
  cpu: fc.integer({ min: 1, max: 64 }),
  memoryBytes: fc.integer({ min: 1, max: 64 }).map((gib) => gib * GIB),
  diskBytes: fc.integer({ min: 1, max: 64 }).map((gib) => gib * GIB),
});

it('every size belongs to exactly one node group, and a listed size to its own', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(size, { minLength: 1, maxLength: 5, selector: (one) => JSON.stringify(one) }),
      size,
      (sizes, other) => {
        const nodeGroups = sizes.map((each, index) => ({
          id: `workers-${index}`,
          instanceType: String(index),
          size: each,
        }));
        const groups = nodeGroupsOf(aPoolConfig({ nodeGroups }));
        expect(groups.filter(({ contains }) => contains(other))).toHaveLength(1);
        for (const { pool, contains } of groups) expect(contains(pool.size)).toBe(true);
      },
    ),
  );
});

it('a pool without a list of sizes is one node group with its name and every size', () => {
  const [group, ...others] = nodeGroupsOf(aPoolConfig());
  expect(others).toEqual([]);
  expect(group?.id).toBe('workers');
  expect(group?.contains({ cpu: 99, memoryBytes: 1, diskBytes: 1 })).toBe(true);
});
