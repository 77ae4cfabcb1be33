// SPDX-License-Identifier: Apache-2.0
// DaemonSets whose pods the scheduler does not admit to a new machine at once, or ever.

import { describe, expect, test } from 'vitest';
import type { Labels } from '../../model/labels.ts';
import type { PodSpecSource } from '../../model/pod-source.ts';
import { type KubernetesObjects, type Packing, pack, type Snapshot } from '../index.ts';
import { aCluster, aPod, HOSTNAME, type PodOptions, select, ZONE } from '../testing/builders.ts';
import { aPool, aSize, zones } from '../testing/offers.ts';
import { replay } from '../testing/replay.ts';

type DaemonSets = NonNullable<KubernetesObjects['daemonSets']>;

function daemonSet(name: string, spec: PodSpecSource, labels: Labels = {}): DaemonSets[number] {
  return { metadata: { name }, spec: { template: { metadata: { labels }, spec } } };
}

function asking(cpu: string, ports: readonly number[] = []): PodSpecSource {
  return {
    containers: [
      { resources: { requests: { cpu } }, ports: ports.map((hostPort) => ({ hostPort })) },
    ],
  };
}

function term(
  kind: 'podAffinity' | 'podAntiAffinity',
  app: string,
  topologyKey: string,
): PodSpecSource {
  return {
    affinity: {
      [kind]: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey, labelSelector: select({ app }) },
        ],
      },
    },
  };
}

/** A full node in zone a with pods on it. */
function zoneA(pods: readonly PodOptions[], ...daemonSets: DaemonSets): Snapshot {
  return aCluster({
    nodes: [{ name: 'old', zone: 'a', allocatable: { cpu: '0', pods: `${pods.length}` } }],
    pods: pods.map((pod, i) => ({ name: `old-${i}`, on: 'old', ...pod })),
    daemonSets,
  });
}

/** Runs in zone a and has anti-affinity against the log daemon. */
const REFUSING: PodOptions = { spec: { nodeName: 'old', ...term('podAntiAffinity', 'log', ZONE) } };

function names(all: Packing): {
  readonly daemons: readonly string[];
  readonly late: readonly string[];
  readonly unplaced: readonly string[];
} {
  return {
    daemons: all.machines.flatMap(({ daemons }) => daemons.map(({ name }) => name)),
    late: all.lateDaemonPods.map(({ pod }) => pod.name),
    unplaced: all.unplaced.map(({ pod }) => pod.name),
  };
}

const inA = aPool({ domains: zones('a') });

describe('a daemon pod with an anti-affinity conflict', () => {
  const log = daemonSet('log', asking('2'), { app: 'log' });

  test('is not reported as running, and the machine is still planned', () => {
    const snapshot = zoneA([REFUSING], log, daemonSet('net', asking('1'), { app: 'net' }));
    const packing = pack(snapshot, [aPod({ cpu: '1' })], { pools: [inA] });
    expect(packing.machines).toHaveLength(1);
    expect(names(packing)).toEqual({ daemons: ['net-pool-new-1'], late: [], unplaced: [] });
    expect(replay(snapshot, packing, 'one by one')).toEqual([]);
  });

  test('is also rejected by pods of the same plan', () => {
    const exclusive = aPod({
      name: 'first',
      ...REFUSING,
      spec: term('podAntiAffinity', 'log', ZONE),
    });
    const snapshot = aCluster({ nodes: [{ name: 'old', zone: 'a' }], daemonSets: [log] });
    const packing = pack(snapshot, [exclusive, aPod({ name: 'large', cpu: '8' })], {
      pools: [aPool({ domains: zones('a'), sizes: [aSize('16x32')] })],
    });
    expect(packing.existing).toMatchObject([{ pod: { name: 'first' }, node: 'old' }]);
    expect(names(packing)).toEqual({ daemons: [], late: [], unplaced: [] });
    expect(replay(snapshot, packing, 'one by one')).toEqual([]);
  });

  test('keeps its space reserved', () => {
    const packing = pack(zoneA([REFUSING], log), [aPod({ cpu: '2' })], {
      pools: [aPool({ domains: zones('a'), sizes: [aSize('2x4'), aSize('4x8')] })],
    });
    expect(packing.machines).toMatchObject([{ size: { name: '4x8' }, daemons: [] }]);
    const two = ['1', '2'].map((name) => aPod({ name, cpu: '2' }));
    expect(pack(zoneA([REFUSING], log), two, { pools: [inA] }).machines).toHaveLength(2);
    const grown = pack(zoneA([REFUSING], log), two, {
      pools: [aPool({ domains: zones('a'), sizes: [aSize('4x8'), aSize('6x12')] })],
    });
    expect(grown.machines).toMatchObject([{ size: { name: '6x12' } }]);
  });

  test('gives up its space for a pod that fits nowhere else', () => {
    const alone = pack(zoneA([REFUSING], log), [aPod({ cpu: '4' })], { pools: [inA] });
    expect(alone.machines).toMatchObject([{ pods: [{}], daemons: [] }]);
    const rest = pack(
      zoneA([REFUSING], log),
      ['3', '1'].map((cpu) => aPod({ name: cpu, cpu })),
      {
        pools: [inA],
      },
    );
    expect(rest.machines).toMatchObject([{ pods: [{ name: '3' }, { name: '1' }] }]);
    const two = ['1', '2'].map((name) => aPod({ name, cpu: '2' }));
    const limited = { domains: zones('a'), limits: { machines: 1 } };
    const full = pack(zoneA([REFUSING], log), two, { pools: [aPool(limited)] });
    expect(full.machines).toMatchObject([{ pods: [{ name: '1' }, { name: '2' }] }]);
    expect(full.unplaced).toEqual([]);
    const sizes = [aSize('4x8'), aSize('5x10')];
    const three = [...two, aPod({ name: '3', cpu: '1' })];
    const grown = pack(zoneA([REFUSING], log), three, { pools: [aPool({ ...limited, sizes })] });
    expect(grown.machines).toMatchObject([{ size: { name: '5x10' }, pods: [{}, {}, {}] }]);
  });

  test('does not exclude a pool whose machines are too small for it', () => {
    const huge = daemonSet('huge', asking('5'), { app: 'log' });
    const packing = pack(zoneA([REFUSING], huge), [aPod({ cpu: '4' })], { pools: [inA] });
    expect(packing.machines).toHaveLength(1);
  });

  test('does not block other pods', () => {
    const spec = {
      ...asking('1', [80]),
      ...term('podAntiAffinity', 'log', HOSTNAME),
    };
    const port = daemonSet('log', asking('1', [80]), { app: 'log' });
    const packing = pack(zoneA([REFUSING], port), [aPod({ spec })], { pools: [inA] });
    expect(names(packing)).toEqual({ daemons: [], late: [], unplaced: [] });
    const free = pack(zoneA([{}], port), [aPod({ spec })], { pools: [inA] });
    expect(names(free).unplaced).toEqual(['pod']);
  });
});

describe('daemon pods with constraints among each other', () => {
  test('run only the first of two with the same host port', () => {
    const sets = ['one', 'two'].map((name) => daemonSet(name, asking('1', [80])));
    const snapshot = aCluster({ nodes: [], daemonSets: sets });
    const packing = pack(snapshot, [aPod({ cpu: '1' })], { pools: [aPool()] });
    expect(names(packing)).toMatchObject({ daemons: ['one-pool-new-1'], late: [] });
    expect(replay(snapshot, packing, 'one by one')).toEqual([]);
  });

  test('are admitted after the pod that their affinity requires', () => {
    const sets = [
      daemonSet(
        'second',
        { ...asking('1'), ...term('podAffinity', 'first', HOSTNAME) },
        { app: 'second' },
      ),
      daemonSet(
        'first',
        { ...asking('1'), ...term('podAffinity', 'x', HOSTNAME) },
        { app: 'first' },
      ),
    ];
    const snapshot = aCluster({ nodes: [], daemonSets: sets });
    const packing = pack(snapshot, [aPod({ cpu: '1', labels: { app: 'x' } })], {
      pools: [aPool()],
    });
    expect(names(packing)).toEqual({
      daemons: [],
      late: ['first-pool-new-1', 'second-pool-new-1'],
      unplaced: [],
    });
    expect(replay(snapshot, packing, 'one by one')).toEqual([]);
  });

  test('have space when they are admitted late', () => {
    const set = daemonSet('late', { ...asking('2'), ...term('podAffinity', 'x', HOSTNAME) });
    const pods = ['1', '2', '3'].map((name) => aPod({ name, cpu: '2', labels: { app: 'x' } }));
    const limited = aPool({ limits: { machines: 1 } });
    const snapshot = aCluster({ nodes: [], daemonSets: [set] });
    const large = pack(snapshot, pods.slice(0, 1), { pools: [limited] });
    expect(names(large).late).toEqual(['late-pool-new-1']);
    const full = pack(snapshot, pods, { pools: [limited] });
    expect(names(full)).toEqual({ daemons: [], late: [], unplaced: ['3'] });
  });

  test('count only their own node for topology spread', () => {
    const constraint = {
      topologyKey: HOSTNAME,
      maxSkew: 1,
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: select({ app: 'log' }),
    };
    const set = daemonSet(
      'log',
      { ...asking('1'), topologySpreadConstraints: [{ ...constraint, topologyKey: ZONE }] },
      { app: 'log' },
    );
    const snapshot = zoneA([{ labels: { app: 'log' } }, { labels: { app: 'log' } }], set);
    const packing = pack(snapshot, [aPod({ cpu: '3' })], {
      pools: [aPool({ domains: zones('a', 'b') })],
    });
    expect(names(packing).daemons).toHaveLength(1);
    expect(replay(snapshot, packing, 'one by one')).toEqual([]);
  });

  test('do not wait for an ephemeral volume', () => {
    const set = daemonSet('log', {
      ...asking('1'),
      volumes: [{ name: 'scratch', ephemeral: {} }],
    });
    const packing = pack(aCluster({ nodes: [], daemonSets: [set] }), [aPod({ cpu: '1' })], {
      pools: [aPool()],
    });
    expect(names(packing).daemons).toEqual(['log-pool-new-1']);
  });

  test('wait for a volume in another zone', () => {
    const set = daemonSet('log', {
      ...asking('1'),
      volumes: [{ name: 'shared', persistentVolumeClaim: { claimName: 'none' } }],
    });
    const packing = pack(aCluster({ nodes: [], daemonSets: [set] }), [aPod({ cpu: '1' })], {
      pools: [aPool()],
    });
    expect(names(packing)).toEqual({ daemons: [], late: [], unplaced: [] });
  });
});

describe('daemon pods of machines that are not planned', () => {
  const log = daemonSet('log', asking('1'), { app: 'log' });
  const old = { name: 'old', zone: 'a', labels: { old: 'yes' } };

  test('satisfy no affinity', () => {
    const snapshot = aCluster({ nodes: [old], daemonSets: [log] });
    const near = aPod({
      spec: { ...term('podAffinity', 'log', ZONE), nodeSelector: { old: 'yes' } },
    });
    const packing = pack(snapshot, [near], { pools: [inA] });
    expect(packing.unplaced).toHaveLength(1);
    expect(packing.machines).toEqual([]);
    const large = aPod({
      name: 'large',
      cpu: '3',
      spec: { ...asking('3'), nodeSelector: { new: 'yes' } },
    });
    const both = pack(snapshot, [near, large], {
      pools: [aPool({ domains: zones('a'), labels: { new: 'yes' } })],
    });
    expect(both.unplaced).toEqual([]);
    expect(replay(snapshot, both, 'one by one')).toEqual([]);
  });

  test('violate no anti-affinity', () => {
    const onlySmall = {
      ...log,
      spec: {
        template: {
          ...log.spec?.template,
          spec: { ...asking('1'), nodeSelector: { kind: 'small' } },
        },
      },
    };
    const snapshot = aCluster({ nodes: [], daemonSets: [onlySmall] });
    const packing = pack(
      snapshot,
      [aPod({ cpu: '1', spec: { ...asking('1'), ...term('podAntiAffinity', 'log', ZONE) } })],
      {
        pools: [
          aPool({ name: 'small', labels: { kind: 'small' }, domains: zones('a') }),
          aPool({ name: 'other', domains: zones('a') }),
        ],
      },
    );
    expect(packing.machines).toMatchObject([{ pool: 'other', daemons: [] }]);
    expect(replay(snapshot, packing, 'one by one')).toEqual([]);
  });
});
