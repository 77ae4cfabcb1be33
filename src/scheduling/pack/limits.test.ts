// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Pod } from '../../model/pod.ts';
import { type Packing, type PackOptions, type PoolOffer, pack, Snapshot } from '../index.ts';
import { aPod, type PodOptions } from '../testing/builders.ts';
import { aPool, aSize, resourcesOf, zones } from '../testing/offers.ts';
import { replay } from '../testing/replay.ts';

const GIB = 2 ** 30;
const EMPTY = Snapshot.of({ nodes: [] });

function many(count: number, options: PodOptions): readonly Pod[] {
  return Array.from({ length: count }, (_, i) =>
    aPod({ ...options, name: `${options.name ?? 'p'}-${i}` }),
  );
}

function packed(
  pods: readonly Pod[],
  pools: readonly PoolOffer[],
  options: Partial<PackOptions> = {},
): Packing {
  const packing = pack(EMPTY, pods, { pools, ...options });
  expect(replay(EMPTY, packing)).toEqual([]);
  return packing;
}

function sizes(packing: Packing): readonly string[] {
  return packing.machines.map(({ size }) => size.name);
}

describe('limits in pack', () => {
  const pods = many(12, { cpu: '1' });

  test('restrict the machines of a pool', () => {
    const packing = packed(pods, [aPool({ limits: { machines: 2 } })]);
    expect(packing.machines).toHaveLength(2);
    expect(packing.unplaced).toHaveLength(4);
    expect(packing.unplaced[0]?.refusals).toEqual([
      {
        pool: 'pool',
        domain: '',
        reasons: [],
        limit: { of: 'pool', limit: 'machines', allowed: 2, used: 2, adding: 1 },
      },
    ]);
  });

  test('restrict the CPU and memory of a pool, also when machines grow', () => {
    const grows = aPool({ sizes: [aSize('2x4'), aSize('4x8'), aSize('8x16')] });
    const cpu = packed(pods, [{ ...grows, limits: { cpuMilli: 10_000 } }]);
    expect(sizes(cpu)).toEqual(['8x16', '2x4']);
    expect(cpu.unplaced).toHaveLength(2);
    const memory = packed(pods, [{ ...grows, limits: { memoryBytes: 9 * 2 ** 30 } }]);
    expect(sizes(memory)).toEqual(['4x8']);
    expect(memory.unplaced[0]?.refusals[0]?.limit).toMatchObject({ limit: 'memory' });
  });

  test('leave the next size to try where the cheapest one that fits exceeds them', () => {
    const shapes = [aSize('2x16', { price: 2 }), aSize('4x4', { price: 1 })];
    const packing = packed(many(1, { cpu: '1', memory: '2Gi' }), [
      aPool({ sizes: shapes, limits: { cpuMilli: 3000 } }),
    ]);
    expect(sizes(packing)).toEqual(['2x16']);
    expect(packing.unplaced).toEqual([]);
  });

  test('are reported only if no size that fits is within them', () => {
    const shapes = [aSize('2x16', { price: 2 }), aSize('4x4', { price: 1 })];
    const large = many(1, { cpu: '3' });
    const limited = packed(large, [aPool({ sizes: shapes, limits: { cpuMilli: 3000 } })]);
    expect(limited.unplaced[0]?.refusals).toEqual([
      {
        pool: 'pool',
        domain: '',
        reasons: [],
        limit: { of: 'pool', limit: 'cpu', allowed: 3000, used: 0, adding: 4000 },
      },
    ]);
  });

  test('are not reported if only the cheapest size exceeds them', () => {
    const shapes = [aSize('4x4', { price: 1 }), aSize('2x16', { price: 2 })];
    const [refusal] =
      packed(many(1, { cpu: '1', spec: { nodeSelector: { disk: 'ssd' } } }), [
        aPool({ sizes: shapes, limits: { cpuMilli: 3000 } }),
      ]).unplaced[0]?.refusals ?? [];
    expect(refusal?.reasons).toMatchObject([{ filter: 'NodeAffinity' }]);
    expect(refusal?.limit).toBeUndefined();
  });

  test('are reported for the largest size if none fits', () => {
    const [refusal] =
      packed(many(1, { cpu: '9' }), [
        aPool({ sizes: [aSize('2x4'), aSize('4x8')], limits: { cpuMilli: 3000 } }),
      ]).unplaced[0]?.refusals ?? [];
    expect(refusal?.reasons).toMatchObject([{ filter: 'NodeResourcesFit' }]);
    expect(refusal?.limit).toMatchObject({ limit: 'cpu', adding: 4000 });
    const within = packed(many(1, { cpu: '9' }), [
      aPool({ sizes: [aSize('2x4'), aSize('4x8')], limits: { cpuMilli: 4000 } }),
    ]);
    expect(within.unplaced[0]?.refusals[0]?.limit).toBeUndefined();
  });

  test('allow another machine after one gave back memory to get more CPU', () => {
    const shapes = [aSize('2x16', { price: 1 }), aSize('4x4', { price: 2 })];
    const pods = [
      ...many(1, { name: 'a', cpu: '2', memory: '2Gi', priority: 9 }),
      ...many(1, { name: 'b', cpu: '2', memory: '1Gi', priority: 8 }),
      ...many(1, { name: 'c', cpu: '1', memory: '9Gi', priority: 7 }),
    ];
    const packing = packed(pods, [aPool({ sizes: shapes, limits: { memoryBytes: 20 * 2 ** 30 } })]);
    expect(packing.unplaced).toEqual([]);
    expect(sizes(packing)).toEqual(['4x4', '2x16']);
  });

  test('restrict a domain, for one pool or for all pools', () => {
    const domains = zones('a', 'b').map((one) => ({ ...one, limits: { machines: 1 } }));
    const packing = packed(pods, [aPool({ domains })]);
    expect(packing.machines.map(({ domain }) => domain)).toEqual(['a', 'b']);
    const pools = ['x', 'y'].map((name) => aPool({ name, domains: zones('a', 'b') }));
    const shared = packed(pods, pools, {
      domainLimits: new Map([
        ['a', { machines: 1 }],
        ['b', { cpuMilli: 4000 }],
      ]),
    });
    expect(shared.machines.map(({ domain }) => domain).sort()).toEqual(['a', 'b']);
    expect(shared.unplaced).toHaveLength(4);
    expect(shared.unplaced[0]?.refusals.map(({ limit }) => limit?.of)).toEqual([
      'a',
      'b',
      'a',
      'b',
    ]);
  });

  test('are used for pods of higher priority first', () => {
    const mixed = [
      ...many(8, { name: 'low', cpu: '1' }),
      ...many(4, { name: 'high', cpu: '1', priority: 9 }),
    ];
    const packing = packed(mixed, [aPool({ limits: { machines: 1 } })]);
    expect(packing.machines[0]?.pods.map(({ name }) => name)).toEqual([
      'high-0',
      'high-1',
      'high-2',
      'high-3',
    ]);
  });
});

test('a limit that pods of lower priority could use better is left to those of higher priority', () => {
  const low = ['low-1', 'low-2'].map((name) => aPod({ name, cpu: '7', memory: '8Gi' }));
  const high = aPod({ name: 'high', cpu: '3', memory: '13Gi', priority: 100 });
  const packing = packed(
    [...low, high],
    [aPool({ sizes: [aSize('4x16'), aSize('8x8')], limits: { memoryBytes: 16 * GIB } })],
  );
  expect(packing.unplaced.map(({ pod }) => pod.name)).toEqual(['low-1', 'low-2']);
});

test('a limit of machines is left to pods that can use only this pool', () => {
  const pools = ['a', 'b'].map((name) =>
    aPool({ name, labels: { pool: name }, limits: { machines: 1 } }),
  );
  const only = (pool: string) => ({ nodeSelector: { pool } });
  for (const pool of ['a', 'b']) {
    const pods = [aPod({ name: 'any', cpu: '3' }), aPod({ name: 'p', cpu: '3', spec: only(pool) })];
    expect(packed(pods, pools).unplaced).toEqual([]);
  }
});

describe('limits of a domain', () => {
  const pods = Array.from({ length: 4 }, (_, i) => aPod({ name: `p${i}`, cpu: '3' }));
  const machines = (pool: Partial<PoolOffer>) => pack(EMPTY, pods, { pools: [aPool(pool)] });

  test('include the overhead of each machine, which those of the pool do not', () => {
    const limits = { memoryBytes: 18 * GIB };
    const domains = [{ name: 'host', labels: {}, limits }];
    const memoryOverheadBytes = 2 * GIB;
    expect(machines({ domains }).machines).toHaveLength(2);
    expect(machines({ domains, memoryOverheadBytes }).machines).toHaveLength(1);
    expect(machines({ limits, memoryOverheadBytes }).machines).toHaveLength(2);
  });

  test('include disk', () => {
    const domains = [{ name: 'host', labels: {}, limits: { diskBytes: 250 * GIB } }];
    const packing = machines({ domains });
    expect(packing.machines).toHaveLength(2);
    expect(packing.unplaced[0]?.refusals[0]?.limit).toMatchObject({
      limit: 'disk',
      used: 200 * GIB,
    });
  });

  test('include the CPUs of one machine', () => {
    const domains = [
      { name: 'small', labels: {}, maxCpuMilli: 3_999 },
      { name: 'large', labels: {}, maxCpuMilli: 4_000, limits: { machines: 3 } },
    ];
    const packing = machines({ domains });
    expect(packing.machines.map(({ domain }) => domain)).toEqual(['large', 'large', 'large']);
    expect(packing.unplaced[0]?.refusals[0]?.limit).toMatchObject({
      of: 'pool/small',
      limit: 'cpu',
    });
  });
});

test('balanced pools are used in turn, the one with the fewest machines first', () => {
  const pods = Array.from({ length: 5 }, (_, i) => aPod({ name: `p${i}`, cpu: '3' }));
  const pools = [aPool({ name: 'a', balance: 3 }), aPool({ name: 'b', balance: 0 })];
  const { machines } = pack(EMPTY, pods, { pools });
  expect(machines.map(({ pool }) => pool)).toEqual(['b', 'b', 'b', 'a', 'b']);
});

test('sizes of a range lose a share of their memory, and the smallest that is left suffices', () => {
  const range = {
    min: resourcesOf(1, 1),
    max: resourcesOf(8, 64),
    step: { ...resourcesOf(1, 1), ephemeralStorageBytes: 0, pods: 0 },
    reserved: { ...resourcesOf(0, 0.5, 0), ephemeralStorageBytes: 0 },
    reservedShare: { memoryBytes: 0.1, ephemeralStorageBytes: 0 },
  };
  const sizeFor = (memory: string) => {
    const { machines } = pack(EMPTY, [aPod({ memory })], {
      pools: [aPool({ sizes: range })],
    });
    return machines[0]?.size;
  };
  // 0.9 × 5 GiB − 0.5 GiB = 4 GiB, less one byte for the rounding.
  expect(sizeFor('4294967290')?.capacity.memoryBytes).toBe(5 * GIB);
  expect(sizeFor('4Gi')?.capacity.memoryBytes).toBe(6 * GIB);
  expect(sizeFor('4Gi')?.allocatable.memoryBytes).toBe(Math.floor(0.9 * 6 * GIB - 0.5 * GIB));
});

test('ranges with prices are compared with priced sizes', () => {
  const range = {
    min: resourcesOf(1, 1),
    max: resourcesOf(8, 64),
    step: resourcesOf(1, 1),
    reserved: { ...resourcesOf(0, 0, 0), ephemeralStorageBytes: 0 },
    prices: { perCpuMilli: 1, perMemoryByte: 0 },
  };
  const poolFor = (price: number) =>
    pack(EMPTY, [aPod({ cpu: '2' })], {
      pools: [
        aPool({ name: 'range', sizes: range }),
        aPool({ name: 'fixed', sizes: [aSize('4x8', { price })] }),
      ],
    }).machines[0]?.pool;
  expect(poolFor(1_999)).toBe('fixed');
  expect(poolFor(2_001)).toBe('range');
});
