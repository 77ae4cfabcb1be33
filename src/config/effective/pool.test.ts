// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { configSchema } from '../schema/index.ts';
import { buildConfig } from './config.ts';

const GIB = 2 ** 30;
const SMALL = { cpu: 1, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
const LARGE = { cpu: 4, memoryBytes: 8 * GIB, diskBytes: 80 * GIB };

function buildPool(pool: object) {
  const file = configSchema.parse({
    sizes: { small: { cpu: 1, memory: '2Gi', disk: '20Gi' } },
    pools: [{ name: 'workers', from: { netboot: {} }, size: 'small', limits: { max: 1 }, ...pool }],
  });
  const [built] = buildConfig(file, { home: '/', base: '/' }).pools;
  return built!;
}

describe('an effective pool', () => {
  it('has the first of a list of sizes as default size and instance type', () => {
    const size = ['small', { cpu: 4, memory: '8Gi', disk: '80Gi' }];
    expect(buildPool({ size })).toMatchObject({
      size: SMALL,
      instanceType: 'small',
      instanceTypes: [{ name: 'small', ...SMALL }],
      sizes: { kind: 'choice', sizes: [{ name: 'small', ...SMALL }, LARGE] },
    });
  });

  it('has the smallest of a span of sizes as default size, without an instance type', () => {
    const size = {
      min: { cpu: 1, memory: '2Gi', disk: '20Gi' },
      max: { cpu: 4, memory: '8Gi', disk: '80Gi' },
    };
    const pool = buildPool({ size });
    expect(pool).toMatchObject({ size: SMALL, instanceTypes: [], sizes: { kind: 'span' } });
    expect(pool.instanceType).toBeUndefined();
  });

  it('has VM options as text, with onboot', () => {
    const vmOptions = { cpu: 'host', sockets: 2, tablet: false };
    expect(buildPool({ vmOptions }).vmOptions).toEqual({
      onboot: '1',
      cpu: 'host',
      sockets: '2',
      tablet: '0',
    });
  });

  it('has a zone when it may use a single host only', () => {
    expect(buildPool({}).zone).toBeUndefined();
    expect(buildPool({ placement: { hosts: { allow: ['pve1'] } } }).zone).toBe('pve1');
    expect(buildPool({ placement: { hosts: { allow: ['pve1', 'pve2'] } } }).zone).toBeUndefined();
  });

  it('passes keys without a unit through and drops those that were converted', () => {
    const pool = buildPool({ priority: 7, memoryOverhead: '64Mi', provisionTimeout: '10m' });
    expect(pool).toMatchObject({
      priority: 7,
      memoryOverheadBytes: 64 * 2 ** 20,
      provisionTimeoutMs: 600_000,
    });
    expect(Object.keys(pool)).not.toContain('memoryOverhead');
    expect(Object.keys(pool)).not.toContain('provisionTimeout');
  });
});
