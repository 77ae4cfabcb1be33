// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Pod } from '../../model/pod.ts';
import { type Packing, type PackOptions, type PoolOffer, pack, Snapshot } from '../index.ts';
import { aPod, HOSTNAME, type PodOptions, select, ZONE } from '../testing/builders.ts';
import { aPool, aSize, resourcesOf, zones } from '../testing/offers.ts';
import { replay } from '../testing/replay.ts';

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

describe('pack with one size', () => {
  test('plans as many machines as needed', () => {
    const packing = packed(many(10, { cpu: '1', memory: '1Gi' }), [aPool()]);
    expect(packing.machines.map(({ pods }) => pods.length)).toEqual([4, 4, 2]);
    expect(packing.unplaced).toEqual([]);
    expect(packing.steps).toHaveLength(10);
    expect(packing.existing).toEqual([]);
  });

  test('plans none without pods or without pools', () => {
    expect(packed([], [aPool()]).machines).toEqual([]);
    const packing = packed(many(1, {}), []);
    expect(packing.machines).toEqual([]);
    expect(packing.unplaced).toMatchObject([{ pod: { name: 'p-0' }, refusals: [] }]);
  });

  test('reports the shortfall of a pod that is too large for every size', () => {
    const packing = packed(many(1, { cpu: '5', memory: '1Gi' }), [aPool()]);
    expect(packing.unplaced.map(({ refusals }) => refusals)).toEqual([
      [
        {
          pool: 'pool',
          domain: '',
          reasons: [
            {
              filter: 'NodeResourcesFit',
              shortfalls: [{ resource: 'cpu', requested: 5000, used: 0, allocatable: 4000 }],
            },
          ],
        },
      ],
    ]);
  });

  test('respects the maximum number of pods per machine', () => {
    const pool = aPool({ sizes: [{ ...aSize('4x8'), allocatable: resourcesOf(4, 8, 3) }] });
    expect(packed(many(7, { cpu: '1m' }), [pool]).machines).toHaveLength(3);
  });

  test('respects extended resources', () => {
    const gpu = { ...resourcesOf(4, 8), extended: { 'nvidia.com/gpu': 2 } };
    const pools = [
      aPool({ name: 'plain' }),
      aPool({ name: 'gpu', sizes: [{ name: 'gpu', capacity: gpu, allocatable: gpu }] }),
    ];
    const asking = many(3, {
      spec: { containers: [{ resources: { requests: { 'nvidia.com/gpu': '1' } } }] },
    });
    const packing = packed(asking, pools);
    expect(packing.machines.map(({ pool, pods }) => [pool, pods.length])).toEqual([
      ['gpu', 2],
      ['gpu', 1],
    ]);
  });

  test('does not use reserved resources', () => {
    const pool = aPool({ sizes: [{ ...aSize('4x8'), allocatable: resourcesOf(3, 7) }] });
    const [machine] = packed(many(3, { cpu: '1' }), [pool]).machines;
    expect(machine?.size).toEqual({
      name: '4x8',
      capacity: resourcesOf(4, 8),
      allocatable: resourcesOf(3, 7),
    });
    expect(machine?.node.allocatable).toEqual(resourcesOf(3, 7));
    expect(packed(many(4, { cpu: '1' }), [pool]).machines).toHaveLength(2);
  });
});

describe('pack with several sizes', () => {
  const pool = aPool({ sizes: [aSize('8x16'), aSize('2x4'), aSize('4x8')] });

  test('chooses the smallest size that holds the pods', () => {
    expect(sizes(packed(many(1, { cpu: '1' }), [pool]))).toEqual(['2x4']);
    expect(sizes(packed(many(3, { cpu: '1' }), [pool]))).toEqual(['4x8']);
    expect(sizes(packed(many(7, { cpu: '1' }), [pool]))).toEqual(['8x16']);
    expect(sizes(packed(many(1, { cpu: '1', memory: '5Gi' }), [pool]))).toEqual(['4x8']);
  });

  test('prefers fewer machines to smaller ones, and keeps the last one small', () => {
    expect(sizes(packed(many(9, { cpu: '1' }), [pool]))).toEqual(['8x16', '2x4']);
    expect(sizes(packed(many(16, { cpu: '1' }), [pool]))).toEqual(['8x16', '8x16']);
  });

  test('does not choose a huge size for a small remainder', () => {
    const leaping = aPool({ sizes: [aSize('2x4'), aSize('64x128')] });
    expect(sizes(packed(many(3, { cpu: '1' }), [leaping]))).toEqual(['2x4', '2x4']);
    expect(sizes(packed(many(60, { cpu: '1' }), [leaping]))).toEqual(['64x128']);
  });

  test('chooses a large size if other pods will fill it and may use it', () => {
    const leaping = aPool({ name: 'leaping', sizes: [aSize('2x4'), aSize('16x32')] });
    const first = many(3, { name: 'a', cpu: '1', memory: '10Mi' });
    const others = (spec: object): readonly Pod[] =>
      many(13, {
        name: 'b',
        spec: { containers: [{ resources: { requests: { cpu: '1' } } }], ...spec },
      });
    expect(sizes(packed([...first, ...others({})], [leaping]))).toEqual(['16x32']);
    const elsewhere = aPool({
      name: 'elsewhere',
      labels: { only: 'b' },
      sizes: [aSize('64x64')],
      taints: [{ key: 'b', value: '', effect: 'NoSchedule' }],
    });
    const apart = others({ nodeSelector: { only: 'b' }, tolerations: [{ operator: 'Exists' }] });
    expect(sizes(packed([...first, ...apart], [leaping, elsewhere])).toSorted()).toEqual([
      '2x4',
      '2x4',
      '64x64',
    ]);
  });

  test('chooses the cheapest size step', () => {
    const spec = (memory: string): object => ({
      containers: [{ resources: { requests: { cpu: '1', memory } } }],
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: HOSTNAME, labelSelector: select({ app: 'x' }) },
          ],
        },
      },
    });
    const apart = [
      aPod({ name: 'large', labels: { app: 'x' }, spec: spec('15Gi') }),
      aPod({ name: 'small', labels: { app: 'x' }, spec: spec('1Gi') }),
    ];
    const steps = aPool({ sizes: [aSize('1x2'), aSize('2x3'), aSize('1x16'), aSize('8x24')] });
    const packing = packed([...apart, ...many(1, { name: 'free', cpu: '1' })], [steps]);
    expect(sizes(packing)).toEqual(['1x16', '2x3']);
  });

  test('chooses sizes by their ratio of CPU to memory', () => {
    const shapes = aPool({ sizes: [aSize('8x8'), aSize('2x32')] });
    expect(sizes(packed(many(1, { cpu: '1', memory: '20Gi' }), [shapes]))).toEqual(['2x32']);
    expect(sizes(packed(many(1, { cpu: '6', memory: '4Gi' }), [shapes]))).toEqual(['8x8']);
  });

  test('compares prices if every size has one', () => {
    const cheap = [aSize('2x4', { price: 5 }), aSize('8x16', { price: 1 })];
    expect(sizes(packed(many(1, { cpu: '1' }), [aPool({ sizes: cheap })]))).toEqual(['8x16']);
    const half = [aSize('2x4'), aSize('8x16', { price: 1 })];
    expect(sizes(packed(many(1, { cpu: '1' }), [aPool({ sizes: half })]))).toEqual(['2x4']);
  });

  test('applies the labels of a size to its machines only', () => {
    const labelled = aPool({
      sizes: [aSize('2x4', { labels: { type: 's' } }), aSize('8x16', { labels: { type: 'l' } })],
    });
    const large = many(1, { cpu: '1', spec: { nodeSelector: { type: 'l' } } });
    expect(sizes(packed(large, [labelled]))).toEqual(['8x16']);
    expect(packed(large, [labelled]).machines[0]?.node.labels).toMatchObject({ type: 'l' });
  });

  test('plans nothing for an empty list of sizes', () => {
    expect(packed(many(1, {}), [aPool({ sizes: [] })]).unplaced).toHaveLength(1);
  });
});

describe('pack with a range of sizes', () => {
  const range = aPool({
    sizes: {
      min: resourcesOf(1, 2),
      max: resourcesOf(8, 16),
      step: { ...resourcesOf(1, 1), ephemeralStorageBytes: 0 },
      reserved: {
        ...resourcesOf(0, 0, 0),
        cpuMilli: 100,
        memoryBytes: 2 ** 29,
        ephemeralStorageBytes: 0,
      },
    },
  });
  const capacities = (packing: Packing): readonly (readonly number[])[] =>
    packing.machines.map(({ size }) => [
      size.capacity.cpuMilli,
      size.capacity.memoryBytes / 2 ** 30,
    ]);

  test('sizes CPU and memory independently, each in its own step', () => {
    expect(capacities(packed(many(1, { cpu: '100m' }), [range]))).toEqual([[1000, 2]]);
    expect(capacities(packed(many(3, { cpu: '1' }), [range]))).toEqual([[4000, 2]]);
    expect(capacities(packed(many(1, { cpu: '900m', memory: '9Gi' }), [range]))).toEqual([
      [1000, 10],
    ]);
    expect(capacities(packed(many(1, { cpu: '901m', memory: '1537Mi' }), [range]))).toEqual([
      [2000, 3],
    ]);
  });

  test('opens another machine after the maximum size', () => {
    const packing = packed(many(9, { cpu: '1' }), [range]);
    expect(capacities(packing)).toEqual([
      [8000, 2],
      [3000, 2],
    ]);
    expect(packing.machines[0]?.size.allocatable.cpuMilli).toBe(7900);
    expect(packing.machines[0]?.size.name).toBe('');
    const tooLarge = packed(many(1, { cpu: '7901m' }), [range]);
    expect(tooLarge.unplaced[0]?.refusals[0]?.reasons).toMatchObject([
      { shortfalls: [{ requested: 7901, allocatable: 7900 }] },
    ]);
  });

  test('allows a shorter last step', () => {
    const odd = aPool({
      sizes: {
        min: resourcesOf(1, 2),
        max: resourcesOf(4, 8),
        step: resourcesOf(2, 4),
        reserved: resourcesOf(0, 0, 0),
      },
    });
    expect(capacities(packed(many(1, { cpu: '3500m' }), [odd]))).toEqual([[4000, 2]]);
    expect(capacities(packed(many(1, { cpu: '3' }), [odd]))).toEqual([[3000, 2]]);
  });
});

describe('the pool chosen by pack', () => {
  test('is one that the pod can use', () => {
    const pools = [
      aPool({ name: 'tainted', taints: [{ key: 'k', value: '', effect: 'NoSchedule' }] }),
      aPool({ name: 'labelled', labels: { tier: 'db' } }),
    ];
    const db = many(1, { spec: { nodeSelector: { tier: 'db' } } });
    expect(packed(db, pools).machines).toMatchObject([
      { pool: 'labelled', node: { labels: { tier: 'db' } } },
    ]);
    const unmatched = packed(many(1, { spec: { nodeSelector: { tier: 'x' } } }), pools);
    expect(unmatched.unplaced[0]?.refusals).toMatchObject([
      { pool: 'tainted', reasons: [{ filter: 'TaintToleration' }, { filter: 'NodeAffinity' }] },
      { pool: 'labelled', reasons: [{ filter: 'NodeAffinity', missing: { tier: 'x' } }] },
    ]);
  });

  test('is none for a pod that names a node', () => {
    const named = (name: string): object => ({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              { matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] },
            ],
          },
        },
      },
    });
    const packing = packed(many(1, { spec: named('node-7') }), [aPool()]);
    expect(packing.unplaced[0]?.refusals).toMatchObject([
      { reasons: [{ filter: 'NodeAffinity' }] },
    ]);
    expect(packed(many(1, { spec: { nodeName: 'node-7' } }), [aPool()]).machines).toEqual([]);
  });

  test('has the highest priority, then the lowest cost', () => {
    const small = aPool({ name: 'small', sizes: [aSize('2x4')] });
    const large = aPool({ name: 'large', sizes: [aSize('8x16')] });
    expect(packed(many(1, { cpu: '1' }), [large, small]).machines).toMatchObject([
      { pool: 'small' },
    ]);
    expect(
      packed(many(1, { cpu: '1' }), [{ ...large, priority: 1 }, small]).machines,
    ).toMatchObject([{ pool: 'large' }]);
    expect(
      packed(many(1, { cpu: '1' }), [
        { ...large, priority: -1 },
        { ...small, priority: -2 },
      ]).machines,
    ).toMatchObject([{ pool: 'large' }]);
  });

  test("matches the pod's preferences if pools are equal", () => {
    const pools = ['a', 'b', 'c'].map((name) => aPool({ name, labels: { pool: name } }));
    const prefers = many(1, {
      spec: {
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              {
                weight: 1,
                preference: {
                  matchExpressions: [{ key: 'pool', operator: 'In', values: ['a', 'b'] }],
                },
              },
              {
                weight: 5,
                preference: { matchExpressions: [{ key: 'pool', operator: 'In', values: ['b'] }] },
              },
            ],
          },
        },
      },
    });
    expect(packed(prefers, pools).machines).toMatchObject([{ pool: 'b' }]);
  });
});

describe('domains in pack', () => {
  test('get machines round-robin', () => {
    const packing = packed(many(24, { cpu: '1' }), [aPool({ domains: zones('a', 'b', 'c') })]);
    expect(packing.machines.map(({ domain }) => domain)).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
    expect(packing.machines[1]?.node.labels).toMatchObject({ [ZONE]: 'b' });
  });

  test('get machines with distinct host names', () => {
    const names = packed(many(8, { cpu: '1' }), [aPool()]).machines.map(
      ({ node }) => node.labels[HOSTNAME],
    );
    expect(new Set(names).size).toBe(2);
    expect(names).toEqual(
      packed(many(8, { cpu: '1' }), [aPool()]).machines.map(({ node }) => node.name),
    );
  });

  test('are filled evenly by a zone spread', () => {
    const spec = {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: ZONE,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: select({ app: 'x' }),
        },
      ],
    };
    const pods = many(7, {
      labels: { app: 'x' },
      cpu: '1',
      spec: { ...spec, containers: [{ resources: { requests: { cpu: '1' } } }] },
    });
    const packing = packed(pods, [aPool({ domains: zones('a', 'b', 'c') })]);
    const counts = Object.values(Object.groupBy(packing.machines, ({ domain }) => domain)).map(
      (machines) => machines?.reduce((sum, { pods: there }) => sum + there.length, 0),
    );
    expect(counts.sort()).toEqual([2, 2, 3]);
    expect(packing.machines).toHaveLength(3);
  });

  test('get as many hosts as a host spread needs', () => {
    const spec = {
      containers: [],
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: HOSTNAME,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: select({ app: 'x' }),
        },
      ],
    };
    const packing = packed(many(5, { labels: { app: 'x' }, spec }), [aPool()]);
    expect(packing.machines).toHaveLength(5);
    const limited = packed(many(5, { labels: { app: 'x' }, spec }), [
      aPool({ limits: { machines: 2 } }),
    ]);
    expect(limited.machines.map(({ pods }) => pods.length).sort()).toEqual([2, 3]);
  });

  test('hold a series with affinity to itself together in one zone', () => {
    const spec = {
      containers: [{ resources: { requests: { cpu: '1' } } }],
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: ZONE, labelSelector: select({ app: 'x' }) },
          ],
        },
      },
    };
    const packing = packed(many(9, { labels: { app: 'x' }, spec }), [
      aPool({ domains: zones('a', 'b') }),
    ]);
    expect(new Set(packing.machines.map(({ domain }) => domain)).size).toBe(1);
    expect(packing.unplaced).toEqual([]);
  });

  test('get one machine per pod with host anti-affinity, filled by other pods', () => {
    const spec = {
      containers: [{ resources: { requests: { cpu: '1' } } }],
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: HOSTNAME, labelSelector: select({ app: 'x' }) },
          ],
        },
      },
    };
    const pods = [
      ...many(9, { name: 'free', cpu: '1' }),
      ...many(3, { labels: { app: 'x' }, spec }),
    ];
    const packing = packed(pods, [aPool()]);
    expect(packing.machines.map(({ pods: there }) => there.length)).toEqual([4, 4, 4]);
  });

  test('do not count for spread if no pod can use them', () => {
    const spec = {
      containers: [{ resources: { requests: { cpu: '1' } } }],
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: ZONE,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: select({ app: 'x' }),
        },
      ],
    };
    const pools = [
      aPool({ name: 'open', domains: zones('a', 'b') }),
      aPool({
        name: 'gpu',
        domains: zones('c'),
        taints: [{ key: 'gpu', value: '', effect: 'NoSchedule' }],
      }),
    ];
    const packing = packed(many(8, { labels: { app: 'x' }, spec }), pools);
    expect(packing.unplaced).toEqual([]);
    expect(packing.machines.map(({ domain }) => domain)).toEqual(['a', 'b']);
  });

  test('that are too small for a pod do not block it if no other pod uses them', () => {
    const spread = {
      containers: [{ resources: { requests: { cpu: '2' } } }],
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: ZONE,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: select({ app: 'x' }),
        },
      ],
    };
    const pods = [
      ...many(4, { labels: { app: 'x' }, spec: spread }),
      ...many(1, { name: 'tiny', memory: '1Mi' }),
    ];
    const tiny = aPool({ name: 'tiny', domains: zones('c'), sizes: [aSize('1x1')], priority: -1 });
    const fixed = packed(pods, [aPool({ domains: zones('a', 'b') }), tiny]);
    expect(fixed.unplaced).toEqual([]);
    expect(sizes(fixed)).toEqual(['4x8', '4x8']);
    const growing = packed(pods, [
      aPool({ domains: zones('a', 'b'), sizes: [aSize('2x4'), aSize('4x8')] }),
      tiny,
    ]);
    expect(growing.unplaced).toEqual([]);
    expect(sizes(growing)).toEqual(['4x8', '4x8']);
  });

  test('that are full do not block the others', () => {
    const spec = {
      containers: [{ resources: { requests: { cpu: '1' } } }],
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: ZONE,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: select({ app: 'x' }),
        },
      ],
    };
    const domains = [
      ...zones('a', 'b'),
      ...zones('c').map((one) => ({ ...one, limits: { machines: 0 } })),
    ];
    const packing = packed(many(8, { labels: { app: 'x' }, spec }), [aPool({ domains })]);
    expect(packing.unplaced).toEqual([]);
  });
});
