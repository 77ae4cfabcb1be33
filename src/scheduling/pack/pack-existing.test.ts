// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { checkFit, pack } from '../index.ts';
import { aCluster, aPod, HOSTNAME, select, ZONE } from '../testing/builders.ts';
import { aPool, aSize, resourcesOf, zones } from '../testing/offers.ts';
import { replay } from '../testing/replay.ts';
import { aClaim, aClass, aVolume, inZone, using } from '../testing/storage.ts';

const pools = [aPool()];

describe('pack with existing nodes', () => {
  test('fills them before it plans machines, the tightest first', () => {
    const snapshot = aCluster({
      nodes: [{ name: 'roomy' }, { name: 'tight', allocatable: { cpu: '1' } }],
    });
    const pods = ['1', '2'].map((name) => aPod({ name, cpu: '1' }));
    const packing = pack(snapshot, pods, { pools });
    expect(packing.machines).toEqual([]);
    expect(packing.existing.map(({ pod, node, how }) => [pod.name, node, how])).toEqual([
      ['1', 'tight', 'fits'],
      ['2', 'roomy', 'fits'],
    ]);
  });

  test('does not change them', () => {
    const snapshot = aCluster();
    const pods = Array.from({ length: 9 }, (_, i) => aPod({ name: `${i}`, cpu: '1' }));
    const first = pack(snapshot, pods, { pools });
    expect(first.machines).toHaveLength(2);
    expect(pack(snapshot, pods, { pools })).toEqual(first);
    expect(snapshot.nodes).toHaveLength(1);
    expect(snapshot.podsOn('node-1')).toEqual([]);
    expect(checkFit(snapshot, aPod({ cpu: '4' }), 'node-1').fits).toBe(true);
  });

  test('does not use them for a pod that prefers other nodes', () => {
    const snapshot = aCluster({
      nodes: [
        { name: 'tight', allocatable: { cpu: '1' } },
        { name: 'liked', labels: { disk: 'ssd' } },
      ],
    });
    const pod = aPod({
      spec: {
        containers: [{ resources: { requests: { cpu: '1' } } }],
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              {
                weight: 1,
                preference: { matchExpressions: [{ key: 'disk', operator: 'Exists' }] },
              },
            ],
          },
        },
      },
    });
    expect(pack(snapshot, [pod], { pools }).existing).toMatchObject([{ node: 'liked' }]);
    const full = { ...pod, requests: { ...pod.requests, cpuMilli: 5000 } };
    expect(
      pack(snapshot, [full], { pools: [aPool({ sizes: [aSize('8x16')] })] }).machines,
    ).toHaveLength(1);
  });

  test('keeps placements on them valid when new zones are added', () => {
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
    const snapshot = aCluster({ nodes: [{ name: 'a', zone: 'a', allocatable: { cpu: '2' } }] });
    const pods = Array.from({ length: 7 }, (_, i) =>
      aPod({ name: `${i}`, labels: { app: 'x' }, spec }),
    );
    const packing = pack(snapshot, pods, { pools: [aPool({ domains: zones('a', 'b') })] });
    expect(replay(snapshot, packing)).toEqual([]);
    expect(packing.existing).toHaveLength(2);
    expect(packing.unplaced).toEqual([]);
    expect(packing.machines.map(({ domain, pods: there }) => [domain, there.length])).toEqual([
      ['b', 4],
      ['a', 1],
    ]);
  });

  test('gives planned machines names that no node has', () => {
    const snapshot = aCluster({ nodes: [{ name: 'pool-new-1', allocatable: { cpu: '0' } }] });
    const [machine] = pack(snapshot, [aPod({ cpu: '1' })], { pools }).machines;
    expect(machine?.node.name).toBe('pool-new-2');
  });
});

describe('pack with pods that depend on each other', () => {
  const near = (app: string): object => ({
    containers: [{ resources: { requests: { cpu: '3' } } }],
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: ZONE, labelSelector: select({ app }) },
        ],
      },
    },
  });
  const chain = [
    aPod({ name: 'first', labels: { app: 'a' }, cpu: '3' }),
    aPod({ name: 'second', labels: { app: 'b' }, spec: near('a') }),
    aPod({ name: 'third', labels: { app: 'c' }, spec: near('b') }),
  ];

  test('places them one after the other, on nodes and on planned machines', () => {
    const offer = [aPool({ domains: zones('a', 'b') })];
    const fresh = pack(aCluster({ nodes: [] }), chain, { pools: offer });
    expect(fresh.unplaced).toEqual([]);
    expect(new Set(fresh.machines.map(({ domain }) => domain)).size).toBe(1);
    const nodes = ['1', '2', '3'].map((name) => ({ name, zone: 'z' }));
    expect(pack(aCluster({ nodes }), chain, { pools: offer }).existing).toHaveLength(3);
  });
});

describe('pack skips pods that need no machine', () => {
  test.each([
    ['gated', { spec: { schedulingGates: [{ name: 'wait' }] } }],
    ['daemon', { controller: 'DaemonSet' }],
    ['finished', { status: { phase: 'Succeeded' } }],
    ['terminating', { terminating: true }],
    ['expendable', { priority: -11 }],
  ])('because they are %s', (reason, options) => {
    const pod = aPod({ cpu: '1', ...options });
    const packing = pack(aCluster(), [pod], { pools, expendableBelow: -10 });
    expect(packing).toMatchObject({ machines: [], existing: [], skipped: [{ pod, reason }] });
  });

  test('but not a pod exactly at the priority limit', () => {
    const packing = pack(aCluster(), [aPod({ priority: -10 })], { pools, expendableBelow: -10 });
    expect(packing.existing).toHaveLength(1);
    expect(pack(aCluster(), [aPod({ priority: -99 })], { pools }).existing).toHaveLength(1);
  });
});

describe('pack with priorities', () => {
  test('ignores expendable pods on nodes', () => {
    const snapshot = aCluster({ pods: [{ name: 'cheap', on: 'node-1', cpu: '4', priority: -20 }] });
    const pod = aPod({ name: 'new', cpu: '4' });
    expect(pack(snapshot, [pod], { pools, expendableBelow: -10 }).existing).toHaveLength(1);
    expect(pack(snapshot, [pod], { pools }).machines).toHaveLength(1);
    expect(snapshot.podsOn('node-1')).toHaveLength(1);
  });

  test('counts a nominated pod as placed', () => {
    const snapshot = aCluster({ pods: [{ name: 'victim', on: 'node-1', cpu: '4' }] });
    const vip = aPod({ name: 'vip', cpu: '3', status: { nominatedNodeName: 'node-1' } });
    const packing = pack(snapshot, [vip], { pools });
    expect(packing.machines).toEqual([]);
    expect(packing.existing).toMatchObject([{ node: 'node-1', how: 'nominated' }]);
    const gone = aPod({ name: 'vip', cpu: '3', status: { nominatedNodeName: 'unknown' } });
    expect(pack(snapshot, [gone], { pools }).machines).toHaveLength(1);
  });

  test('does not use the space of nominated pods', () => {
    const nominated = { name: 'vip', cpu: '3', status: { nominatedNodeName: 'node-1' } };
    const snapshot = aCluster({ pods: [nominated] });
    const packing = pack(snapshot, [aPod({ name: 'new', cpu: '2' })], { pools });
    expect(packing.existing).toEqual([]);
    expect(packing.machines).toHaveLength(1);
    // The same pod given twice is counted once.
    const both = pack(snapshot, [aPod(nominated), aPod({ name: 'new', cpu: '1' })], { pools });
    expect(both.machines).toEqual([]);
    expect(both.existing).toHaveLength(2);
  });
});

describe('pack with DaemonSets', () => {
  const daemonSet = (name: string, spec: object, labels = {}): object => ({
    metadata: { name, namespace: 'kube-system' },
    spec: { template: { metadata: { labels }, spec } },
  });
  const requests = (cpu: string): object => ({
    containers: [{ resources: { requests: { cpu } } }],
  });
  const cluster = (...daemonSets: object[]): ReturnType<typeof aCluster> =>
    aCluster({
      nodes: [],
      daemonSets: daemonSets as NonNullable<Parameters<typeof aCluster>[0]>['daemonSets'] & object,
    });

  test('adds their pods to every planned machine', () => {
    const snapshot = cluster(daemonSet('log', requests('1')));
    const pods = Array.from({ length: 6 }, (_, i) => aPod({ name: `${i}`, cpu: '1' }));
    const packing = pack(snapshot, pods, { pools });
    expect(packing.machines.map(({ pods: there }) => there.length)).toEqual([3, 3]);
    expect(packing.machines[0]?.daemons).toMatchObject([{ name: 'log-pool-new-1' }]);
    expect(replay(snapshot, packing)).toEqual([]);
    const sized = pack(snapshot, pods.slice(0, 1), {
      pools: [aPool({ sizes: [aSize('1x2'), aSize('2x4')] })],
    });
    expect(sized.machines).toMatchObject([{ size: { name: '2x4' } }]);
  });

  test('adds their pods only where selectors and tolerations allow', () => {
    const tainted = aPool({
      labels: { gpu: 'yes' },
      taints: [{ key: 'gpu', value: '', effect: 'NoSchedule' }],
    });
    const pod = aPod({ cpu: '1', spec: { containers: [], tolerations: [{ operator: 'Exists' }] } });
    const daemons = (...sets: object[]): readonly string[] =>
      pack(cluster(...sets), [pod], { pools: [tainted] }).machines.flatMap((one) =>
        one.daemons.map(({ name }) => name.replace('-pool-new-1', '')),
      );
    expect(
      daemons(
        daemonSet('plain', requests('1')),
        daemonSet('gpu', { ...requests('1'), tolerations: [{ key: 'gpu', operator: 'Exists' }] }),
        daemonSet('elsewhere', {
          ...requests('1'),
          nodeSelector: { gpu: 'no' },
          tolerations: [{ operator: 'Exists' }],
        }),
        daemonSet('named', {
          ...requests('1'),
          nodeName: 'x',
          tolerations: [{ operator: 'Exists' }],
        }),
      ),
    ).toEqual(['gpu']);
  });

  test('does not use a pool whose machines they fill', () => {
    const packing = pack(cluster(daemonSet('huge', requests('4'))), [aPod({ cpu: '1' })], {
      pools,
    });
    expect(packing.unplaced[0]?.refusals).toMatchObject([
      {
        reasons: [
          { shortfalls: [{ resource: 'cpu', requested: 1000, used: 4000, allocatable: 4000 }] },
        ],
      },
    ]);
    const larger = pack(cluster(daemonSet('huge', requests('5'))), [aPod()], { pools });
    expect(larger.machines).toEqual([]);
  });

  test('counts their pods for affinity', () => {
    const near = {
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            {
              topologyKey: HOSTNAME,
              labelSelector: select({ app: 'log' }),
              namespaces: ['kube-system'],
            },
          ],
        },
      },
    };
    const packing = pack(
      cluster(daemonSet('log', requests('1'), { app: 'log' })),
      [aPod({ spec: near })],
      { pools },
    );
    expect(packing.machines).toHaveLength(1);
  });
});

describe('pack with volumes and ports', () => {
  test('plans the machine in the zone of the volume', () => {
    const snapshot = aCluster({
      nodes: [],
      storageClasses: [aClass('local')],
      persistentVolumes: [aVolume('pv', inZone('b'))],
      persistentVolumeClaims: [aClaim('c'), aClaim('d')],
    });
    const offer = [aPool({ domains: zones('a', 'b') })];
    const packing = pack(
      snapshot,
      [aPod({ name: '1', spec: using('c') }), aPod({ name: '2', spec: using('d') })],
      { pools: offer },
    );
    expect(packing.machines).toMatchObject([{ domain: 'b' }]);
    expect(packing.unplaced).toMatchObject([
      {
        pod: { name: '2' },
        refusals: [
          { reasons: [{ problem: 'no-volume' }] },
          { reasons: [{ problem: 'no-volume' }] },
        ],
      },
    ]);
  });

  test('plans one machine per pod with the same host port', () => {
    const spec = { containers: [{ ports: [{ hostPort: 80 }] }] };
    const pods = ['1', '2', '3'].map((name) => aPod({ name, spec }));
    expect(pack(aCluster({ nodes: [] }), pods, { pools }).machines).toHaveLength(3);
  });

  test('sizes ephemeral storage', () => {
    const pod = aPod({
      spec: { containers: [{ resources: { requests: { 'ephemeral-storage': '60Gi' } } }] },
    });
    const range = {
      min: { ...resourcesOf(1, 1), ephemeralStorageBytes: 2 ** 30 },
      max: resourcesOf(4, 8),
      step: { ...resourcesOf(1, 1), ephemeralStorageBytes: 7 * 2 ** 30 },
      reserved: { ...resourcesOf(0, 0, 0), ephemeralStorageBytes: 0 },
    };
    const [machine] = pack(aCluster({ nodes: [] }), [pod], {
      pools: [aPool({ sizes: range })],
    }).machines;
    expect(machine?.size.capacity.ephemeralStorageBytes).toBe(64 * 2 ** 30);
  });
});
