// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { MachineId } from '../model/machine.ts';
import { checkLimits, countAllowed, maxMachines, type PoolLimits } from './limits.ts';

const GIB = 2 ** 30;

function poolWith(limits: Partial<PoolLimits['limits']>): PoolLimits {
  const size = { cpu: 2, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
  const all = { min: 0, max: 10, cpu: 0, memoryBytes: 0, ...limits };
  return { name: 'workers', limits: all, size, nodeGroups: [] };
}

function membersOf({ size }: PoolLimits, count: number) {
  return Array.from({ length: count }, (_, index) => ({
    id: `member-${index}` as MachineId,
    phase: 'ready' as const,
    requestedAt: index,
    size,
  }));
}

it.each([
  {
    limits: {},
    have: 9,
    refusal: {
      message: 'pool workers is limited to 10 machines, not 11',
      requested: 11,
      max: 10,
    },
  },
  {
    limits: { cpu: 5 },
    have: 1,
    refusal: {
      message: 'pool workers is limited to 5 vCPUs; 3 machines would have 6',
      requested: 6,
      max: 5,
    },
  },
  {
    limits: { memoryBytes: 5 * GIB },
    have: 1,
    refusal: {
      message: 'pool workers is limited to 5 GiB of memory; 3 machines would have 6 GiB',
      requested: 6 * GIB,
      max: 5 * GIB,
    },
  },
])('refuses two more machines: $refusal.message', ({ limits, have, refusal }) => {
  const pool = poolWith(limits);
  const request = { members: membersOf(pool, have), count: 2, size: pool.size };
  expect(checkLimits(pool, request)).toEqual(refusal);
});

it('refuses exactly the requests that the limits do not allow completely', () => {
  const limit = fc.integer({ min: 0, max: 20 });
  const limits = fc.record({ max: limit, cpu: limit, memoryBytes: limit.map((gib) => gib * GIB) });
  fc.assert(
    fc.property(limits, fc.nat(12), fc.nat(12), (chosen, have, count) => {
      const pool = poolWith(chosen);
      const request = { members: membersOf(pool, have), count, size: pool.size };
      const allowed = countAllowed(pool, request);
      expect(checkLimits(pool, request) === undefined).toBe(allowed === count);
      expect(checkLimits(pool, { ...request, count: allowed })).toBeUndefined();
    }),
  );
});

it.each([
  ['the number of machines', {}, 10],
  ['vCPUs', { cpu: 5 }, 2],
  ['memory', { memoryBytes: 7 * GIB }, 3],
] as const)('limits the maximum number of machines by %s', (_limit, limits, max) => {
  expect(maxMachines(poolWith(limits))).toBe(max);
});
