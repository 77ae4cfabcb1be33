// SPDX-License-Identifier: Apache-2.0
// Compares packings of seeded workloads with first-fit-decreasing: sorted by CPU, by memory and by dominant
// share, with every size. A plan may be better than all of them, never worse than the best.

import { describe, expect, test } from 'vitest';
import type { Pod } from '../../model/pod.ts';
import {
  type Limits,
  type Packing,
  type PoolOffer,
  pack,
  type SizeOffer,
  Snapshot,
} from '../index.ts';
import { aPod, ZONE } from '../testing/builders.ts';
import { aPool, aSize, resourcesOf, zones } from '../testing/offers.ts';

/** A linear congruential generator: the workloads are the same in every run. */
class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed + 1;
  }

  int(low: number, high: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return low + Math.floor((this.#state / 2 ** 32) * (high - low + 1));
  }

  pick<T>(options: readonly T[]): T {
    const picked = options[this.int(0, options.length - 1)];
    if (picked === undefined) throw new RangeError('cannot pick from an empty list');
    return picked;
  }
}

interface Workload {
  readonly sizes: readonly SizeOffer[];
  readonly pods: readonly Pod[];
}

interface Shape {
  readonly cpuMilli: number;
  readonly mib: number;
}

type Kind = (random: Random) => {
  readonly sizes: readonly SizeOffer[];
  readonly shape: () => Shape;
};

const priced = (text: string, price: number): SizeOffer => aSize(text, { price });

/** Every size is tried up to this number. */
const MOST_SIZES = 64;

/** Sizes with different ratios of memory to CPU. */
function manySizes(
  random: Random,
  count: number,
  price: (base: number) => number,
): readonly SizeOffer[] {
  return Array.from({ length: count }, (_, i) => {
    const cpus = 4 + i;
    const gib = cpus * random.pick([4, 6, 8]);
    return priced(`${cpus}x${gib}`, price(cpus * 0.6 + gib * 0.1));
  });
}

const KINDS: Readonly<Record<string, Kind>> = {
  'small pods on one size': (random) => ({
    sizes: [aSize('16x64')],
    shape: () => ({
      cpuMilli: random.pick([100, 250, 500, 1000, 1500]),
      mib: random.pick([100, 256, 512, 1024, 2048, 4096]),
    }),
  }),
  'large pods on one size': (random) => ({
    sizes: [aSize('8x32')],
    shape: () => ({ cpuMilli: random.int(1000, 6000), mib: random.int(1000, 24_000) }),
  }),
  'pods of about a third of a machine': (random) => ({
    sizes: [aSize('8x32')],
    shape: () => ({ cpuMilli: random.int(1800, 3600), mib: random.int(6000, 14_000) }),
  }),
  'sizes with a price per unit': (random) => ({
    sizes: [priced('4x16', 4), priced('8x32', 8), priced('16x64', 16), priced('32x128', 32)],
    shape: () => ({ cpuMilli: random.int(200, 4000), mib: random.int(500, 16_000) }),
  }),
  'sizes whose price grows slower than they do': (random) => ({
    sizes: [priced('4x16', 5), priced('8x32', 9), priced('16x64', 16)],
    shape: () => ({ cpuMilli: random.int(500, 4000), mib: random.int(500, 16_000) }),
  }),
  'sizes whose price grows faster than they do': (random) => ({
    sizes: [priced('4x16', 4), priced('8x32', 8.5), priced('16x64', 19)],
    shape: () => ({ cpuMilli: random.int(500, 4000), mib: random.int(500, 16_000) }),
  }),
  'sizes of different shapes': (random) => ({
    sizes: [priced('8x16', 7), priced('8x64', 11), priced('16x32', 14), priced('4x32', 6)],
    shape: () => ({ cpuMilli: random.int(200, 4000), mib: random.int(500, 15_000) }),
  }),
  'many sizes with a price for each machine': (random) => ({
    sizes: manySizes(random, 40, (base) => base + 3),
    shape: () => ({ cpuMilli: random.int(200, 4000), mib: random.int(500, 15_000) }),
  }),
  'many sizes whose price grows faster than they do': (random) => ({
    sizes: manySizes(random, 20, (base) => base ** 1.1),
    shape: () => ({
      cpuMilli: random.pick([250, 1000, 1500]),
      mib: random.pick([256, 2048, 4096]),
    }),
  }),
  'many sizes without prices': (random) => ({
    sizes: Array.from({ length: MOST_SIZES }, (_, i) => aSize(`${i + 4}x${4 * i + 16}`)),
    shape: () => ({ cpuMilli: random.int(200, 4000), mib: random.int(500, 16_000) }),
  }),
  'sizes without prices': (random) => ({
    sizes: [aSize('4x16'), aSize('8x32'), aSize('16x64')],
    shape: () => ({ cpuMilli: random.int(200, 4000), mib: random.int(500, 16_000) }),
  }),
};

function workload(kind: Kind, seed: number): Workload {
  const random = new Random(seed);
  const { sizes, shape } = kind(random);
  const pods = Array.from({ length: random.int(20, 150) }, (_, i) => {
    const { cpuMilli, mib } = shape();
    return aPod({ name: `p-${i}`, cpu: `${cpuMilli}m`, memory: `${mib}Mi` });
  });
  return { sizes, pods };
}

interface Result {
  readonly machines: number;
  readonly cost: number;
}

/** The price, or without prices the CPU: all sizes have the same ratio of memory to CPU. */
function costOf({ price, capacity }: SizeOffer): number {
  return price ?? capacity.cpuMilli;
}

type SortKey = (pod: Pod, size: SizeOffer) => number;

const SORT_KEYS: readonly SortKey[] = [
  ({ requests }) => requests.cpuMilli,
  ({ requests }) => requests.memoryBytes,
  ({ requests }, { allocatable }) =>
    Math.max(
      requests.cpuMilli / allocatable.cpuMilli,
      requests.memoryBytes / allocatable.memoryBytes,
    ),
];

/** Returns undefined if a pod is larger than the size. */
function firstFit({ pods, sizes }: Workload, size: SizeOffer, key: SortKey): Result | undefined {
  const bins: { cpuMilli: number; memoryBytes: number }[] = [];
  for (const { requests } of pods.toSorted((a, b) => key(b, size) - key(a, size))) {
    const { cpuMilli, memoryBytes } = requests;
    const fits = (free: (typeof bins)[number]): boolean =>
      cpuMilli <= free.cpuMilli && memoryBytes <= free.memoryBytes;
    let bin = bins.find(fits);
    if (bin === undefined) {
      const { allocatable } = size;
      bin = { cpuMilli: allocatable.cpuMilli, memoryBytes: allocatable.memoryBytes };
      if (!fits(bin)) return undefined;
      bins.push(bin);
    }
    bin.cpuMilli -= cpuMilli;
    bin.memoryBytes -= memoryBytes;
  }
  return { machines: bins.length, cost: totalCost(bins, size, sizes) };
}

// Each machine becomes the cheapest size that holds its pods.
function totalCost(
  bins: readonly { readonly cpuMilli: number; readonly memoryBytes: number }[],
  { allocatable }: SizeOffer,
  sizes: readonly SizeOffer[],
): number {
  return bins.reduce((sum, free) => {
    const holding = sizes.filter(
      (size) =>
        size.allocatable.cpuMilli >= allocatable.cpuMilli - free.cpuMilli &&
        size.allocatable.memoryBytes >= allocatable.memoryBytes - free.memoryBytes,
    );
    return sum + Math.min(...holding.map(costOf));
  }, 0);
}

function allFirstFits(work: Workload): readonly Result[] {
  return work.sizes.flatMap((size) => SORT_KEYS.flatMap((key) => firstFit(work, size, key) ?? []));
}

/**
 * With prices, a cheaper plan is better. Without, fewer machines of no more capacity in all, or less capacity in
 * no more machines.
 */
function isBetter(one: Result, other: Result, { sizes }: Workload): boolean {
  if (sizes[0]?.price !== undefined) return one.cost < other.cost - 1e-9;
  return (
    one.cost <= other.cost &&
    one.machines <= other.machines &&
    (one.cost < other.cost || one.machines < other.machines)
  );
}

function resultOf({ machines }: Packing, sizes: readonly SizeOffer[]): Result {
  const costs = new Map(sizes.map((size) => [size.name, costOf(size)]));
  return {
    machines: machines.length,
    cost: machines.reduce((sum, { size }) => sum + (costs.get(size.name) ?? Number.NaN), 0),
  };
}

function withHostPort(pod: Pod): Pod {
  return { ...pod, hostPorts: [{ ip: '', protocol: 'TCP', port: 80 }] };
}

const EMPTY = Snapshot.of({ nodes: [] });
const WORKLOADS_PER_KIND = 25;

function findWorsePackings(works: readonly Workload[]) {
  return works.flatMap((work, seed) => {
    const pools: readonly PoolOffer[] = [aPool({ sizes: work.sizes })];
    const packing = pack(EMPTY, work.pods, { pools });
    expect(packing.unplaced).toEqual([]);
    const ours = resultOf(packing, work.sizes);
    return allFirstFits(work)
      .filter((other) => isBetter(other, ours, work))
      .map((other) => ({ seed, ours, other }));
  });
}

function workloads(kind: Kind, count: number): readonly Workload[] {
  return Array.from({ length: count }, (_, seed) => workload(kind, seed));
}

describe('pack is never worse than the best first-fit-decreasing', () => {
  test.each(Object.entries(KINDS))('for %s', (_, kind) => {
    expect(findWorsePackings(workloads(kind, WORKLOADS_PER_KIND))).toEqual([]);
  });

  test('for pods that are larger than some sizes, which have different labels', () => {
    const sizes = [
      priced('2x8', 3),
      priced('8x32', 9),
      priced('16x64', 16),
      priced('32x128', 30),
    ].map((size) => ({ ...size, labels: { size: size.name } }));
    const kind: Kind = (random) => ({
      sizes,
      shape: () => ({ cpuMilli: random.int(500, 14_000), mib: random.int(500, 56_000) }),
    });
    expect(findWorsePackings(workloads(kind, WORKLOADS_PER_KIND))).toEqual([]);
  });

  test.each(Object.entries(KINDS))('for %s, with a host port of one pod', (_, kind) => {
    const works = workloads(kind, 5).map(({ sizes, pods: [first, ...others] }) => ({
      sizes,
      pods: first === undefined ? [] : [withHostPort(first), ...others],
    }));
    expect(findWorsePackings(works)).toEqual([]);
  });

  test('by more than 2 % with even more sizes', () => {
    const kind: Kind = (random) => ({
      sizes: manySizes(random, 150, (base) => base ** 0.95),
      shape: () => ({ cpuMilli: random.int(200, 4000), mib: random.int(500, 15_000) }),
    });
    for (let seed = 0; seed < 5; seed += 1) {
      const work = workload(kind, seed);
      const packing = pack(EMPTY, work.pods, { pools: [aPool({ sizes: work.sizes })] });
      const best = Math.min(...allFirstFits(work).map(({ cost }) => cost));
      expect(resultOf(packing, work.sizes).cost).toBeLessThanOrEqual(1.02 * best);
    }
  });
});

/** Limits that machines of one size, filled by first-fit-decreasing, use up completely. */
function exactLimits(work: Workload): readonly Limits[] {
  const fits = work.sizes.flatMap((size) => {
    const found = SORT_KEYS.flatMap((key) => firstFit(work, size, key)?.machines ?? []);
    return found.length === 0 ? [] : [{ size, machines: Math.min(...found) }];
  });
  const least = (amount: (size: SizeOffer) => number): number =>
    Math.min(...fits.map(({ size, machines }) => machines * amount(size)));
  return [
    { machines: least(() => 1) },
    { cpuMilli: least(({ capacity }) => capacity.cpuMilli) },
    { memoryBytes: least(({ capacity }) => capacity.memoryBytes) },
  ];
}

describe('pack leaves no pod that first-fit-decreasing places within the limits of the pool', () => {
  test.each(Object.entries(KINDS))('for %s', (_, kind) => {
    const left = Array.from({ length: 12 }, (__, seed) => seed).flatMap((seed) => {
      const work = workload(kind, seed);
      return exactLimits(work).flatMap((limits) => {
        const pools = [aPool({ sizes: work.sizes, limits })];
        const { unplaced } = pack(EMPTY, work.pods, { pools });
        return unplaced.length === 0 ? [] : [{ seed, limits, pods: unplaced.length }];
      });
    });
    expect(left).toEqual([]);
  });
});

/** Pools that differ in sizes, and pods of which some may use only one of them. */
function severalPools(seed: number) {
  const random = new Random(seed + 1_000);
  const texts = ['2x8', '3x12', '4x16', '6x24', '8x32', '12x48', '16x64'];
  const pools = ['a', 'b', 'c'].slice(0, random.int(2, 3)).map((name) => {
    const sizes = [random.pick(texts.slice(2)), random.pick(texts)];
    return aPool({
      name,
      labels: { pool: name },
      sizes: [...new Set(sizes)].map((one) => aSize(one)),
    });
  });
  const cpus = pools.map(({ sizes }) => Math.max(...sizesOf(sizes).map(cpuOf)));
  const smallest = Math.min(...cpus);
  const shapes = Array.from({ length: random.int(2, 7) }, () => ({
    cpu: `${random.int(50, smallest * random.pick([300, 600, 990]))}m`,
    memory: `${random.int(50, smallest * random.pick([300, 900, 1_900]))}Mi`,
    spec: { nodeSelector: random.pick([{}, {}, ...pools.map(({ name }) => ({ pool: name }))]) },
  }));
  const pods = Array.from({ length: random.int(10, 100) }, (_, i) => {
    const { cpu, memory, spec } = random.pick(shapes);
    const containers = [{ resources: { requests: { cpu, memory } } }];
    return aPod({ name: `p-${i}`, spec: { ...spec, containers } });
  });
  return { pools, pods };
}

function sizesOf(sizes: PoolOffer['sizes']): readonly SizeOffer[] {
  return 'min' in sizes ? [] : sizes;
}

function cpuOf({ capacity }: Pick<SizeOffer, 'capacity'>): number {
  return capacity.cpuMilli / 1_000;
}

interface PooledSize {
  /** Or the zone. */
  readonly pool: string;
  readonly size: SizeOffer;
}

/** A machine has the preferred size if a pod may use it and fits, otherwise the smallest one that holds it. */
function firstFitInPools(
  pods: readonly Pod[],
  all: readonly PooledSize[],
  { preferred, key }: { readonly preferred: PooledSize; readonly key: SortKey },
): Result | undefined {
  const bins: { readonly pool: string; cpuMilli: number; memoryBytes: number; cost: number }[] = [];
  const sorted = pods.toSorted((a, b) => key(b, preferred.size) - key(a, preferred.size));
  for (const { requests, nodeSelector } of sorted) {
    const { cpuMilli, memoryBytes } = requests;
    const isAllowed = (pool: string): boolean =>
      Object.values(nodeSelector).every((value) => value === pool);
    const holds = ({ pool, size: { allocatable } }: PooledSize): boolean =>
      isAllowed(pool) && cpuMilli <= allocatable.cpuMilli && memoryBytes <= allocatable.memoryBytes;
    let bin = bins.find(
      (one) => isAllowed(one.pool) && cpuMilli <= one.cpuMilli && memoryBytes <= one.memoryBytes,
    );
    if (bin === undefined) {
      const chosen = [preferred, ...all].find(holds);
      if (chosen === undefined) return undefined;
      const { allocatable } = chosen.size;
      bin = { pool: chosen.pool, ...allocatable, cost: costOf(chosen.size) };
      bins.push(bin);
    }
    bin.cpuMilli -= cpuMilli;
    bin.memoryBytes -= memoryBytes;
  }
  return { machines: bins.length, cost: bins.reduce((sum, { cost }) => sum + cost, 0) };
}

test('pack needs no more machines than first-fit-decreasing for pods of several pools', () => {
  const seeds = Array.from({ length: 150 }, (_, seed) => seed);
  const worse = seeds.flatMap((seed) => {
    const { pools, pods } = severalPools(seed);
    const sizes = pools.flatMap(({ name, sizes: own }) =>
      sizesOf(own).map((size) => ({ pool: name, size })),
    );
    const ascending = sizes.toSorted((a, b) => costOf(a.size) - costOf(b.size));
    const packing = pack(EMPTY, pods, { pools });
    const ours = resultOf(
      packing,
      sizes.map(({ size }) => size),
    );
    return sizes
      .flatMap((preferred) =>
        SORT_KEYS.flatMap((key) => firstFitInPools(pods, ascending, { preferred, key }) ?? []),
      )
      .filter(({ machines, cost }) => machines < ours.machines && cost <= ours.cost)
      .map((other) => ({ seed, ours, other }));
  });
  expect(worse).toEqual([]);
});

test('pack needs no more machines than first-fit-decreasing for pods of several zones', () => {
  const worse = Array.from({ length: 60 }, (_, seed) => seed).flatMap((seed) => {
    const random = new Random(seed + 2_000);
    const names = ['a', 'b', 'c'].slice(0, random.int(2, 3));
    const sizes = [random.pick(['4x16', '6x24']), random.pick(['8x32', '16x64'])].map((one) =>
      aSize(one),
    );
    const shapes = Array.from({ length: random.int(2, 7) }, () => ({
      requests: { cpu: `${random.int(300, 6_000)}m`, memory: `${random.int(500, 24_000)}Mi` },
      nodeSelector: random.pick([{}, ...names.map((zone) => ({ [ZONE]: zone }))]),
    }));
    const pods = Array.from({ length: random.int(10, 100) }, (_, i) => {
      const { requests, nodeSelector } = random.pick(shapes);
      const containers = [{ resources: { requests } }];
      return aPod({ name: `p-${i}`, spec: { nodeSelector, containers } });
    });
    const pools = [aPool({ sizes, domains: zones(...names) })];
    const ours = resultOf(pack(EMPTY, pods, { pools }), sizes);
    const all = sizes.flatMap((size) => names.map((pool) => ({ pool, size })));
    return all
      .flatMap((preferred) =>
        SORT_KEYS.flatMap((key) => firstFitInPools(pods, all, { preferred, key }) ?? []),
      )
      .filter(({ machines, cost }) => machines < ours.machines && cost <= ours.cost)
      .map((other) => ({ seed, ours, other }));
  });
  expect(worse).toEqual([]);
});

test('pack needs no more machines and CPUs for pods of a pool with a range and of another pool than for each alone', () => {
  const range = {
    min: resourcesOf(1, 2),
    max: resourcesOf(16, 64),
    step: { ...resourcesOf(1, 1), ephemeralStorageBytes: 0 },
    reserved: { ...resourcesOf(0.1, 0.5, 0), ephemeralStorageBytes: 0 },
  };
  const worse = Array.from({ length: 30 }, (_, i) => i + 10).flatMap((seed) => {
    const random = new Random(seed);
    const sizes = ['4x16', '8x32', '16x64'].slice(random.int(0, 2)).map((text) => aSize(text));
    const pools = [
      aPool({ name: 'listed', labels: { pool: 'listed' }, sizes }),
      aPool({ name: 'range', labels: { pool: 'range' }, sizes: range }),
    ];
    const shapes = Array.from({ length: random.int(2, 7) }, () => ({
      resources: {
        requests: { cpu: `${random.int(300, 3_900)}m`, memory: `${random.int(500, 15_000)}Mi` },
      },
      pool: random.pick(['listed', 'range']),
    }));
    const pods = Array.from({ length: random.int(10, 80) }, (_, i) => {
      const { resources, pool } = random.pick(shapes);
      return aPod({
        name: `p-${i}`,
        spec: { nodeSelector: { pool }, containers: [{ resources }] },
      });
    });
    const measure = (some: readonly Pod[]): readonly [number, number] => {
      const { machines } = pack(EMPTY, some, { pools });
      return [machines.length, machines.reduce((sum, { size }) => sum + cpuOf(size), 0)];
    };
    const [machines, cpus] = measure(pods);
    const alone = pools.map(({ name }) =>
      measure(pods.filter(({ nodeSelector }) => nodeSelector['pool'] === name)),
    );
    const isFewer = alone.reduce((sum, one) => sum + one[0], 0) < machines;
    const isLess = alone.reduce((sum, one) => sum + one[1], 0) <= cpus;
    return isFewer && isLess ? [{ seed, alone, machines, cpus }] : [];
  });
  expect(worse).toEqual([]);
});
