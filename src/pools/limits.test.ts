// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { MachineId } from '../model/machine-id.ts';
import { checkLimits, countAllowed, type PoolLimits } from './limits.ts';

const GIB = 2 ** 30;

function poolWith(limits: Partial<PoolLimits['limits']>): PoolLimits {
  const size = { cpu: 2, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
  return { name: 'workers', limits: { min: 0, max: 10, cpu: 0, memoryBytes: 0, ...limits }, size };
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
  ['machines', {}, 9, 'pool workers is limited to 10 machines, not 11', 11, 10],
  ['vCPUs', { cpu: 5 }, 1, 'pool workers is limited to 5 vCPUs; 3 machines would have 6', 6, 5],
  [
    'memory',
    { memoryBytes: 5 * GIB },
    1,
    'pool workers is limited to 5 GiB of memory; 3 machines would have 6 GiB',
    6 * GIB,
    5 * GIB,
  ],
] as const)(
  'reports which limit a request exceeds: %s',
  (_what, limits, have, message, requested, max) => {
    const pool = poolWith(limits);
    const request = { members: membersOf(pool, have), count: 2, size: pool.size };
    expect(checkLimits(pool, request)).toEqual({ message, requested, max });
  },
);

it('refuses exactly the requests that the limits do not allow completely', () => {
  const limit = fc.integer({ min: 0, max: 20 });
  fc.assert(
    fc.property(limit, limit, limit, fc.nat(12), fc.nat(12), (max, cpu, memory, have, count) => {
      const pool = poolWith({ max, cpu, memoryBytes: memory * GIB });
      const request = { members: membersOf(pool, have), count, size: pool.size };
      const allowed = countAllowed(pool, request);
      expect(checkLimits(pool, request) === undefined).toBe(allowed === count);
      expect(checkLimits(pool, { ...request, count: allowed })).toBeUndefined();
    }),
  );
});
