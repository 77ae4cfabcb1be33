// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import {
  type DrainSimulation,
  simulateDrain,
  simulateDrains,
  withNodes,
  withoutNodes,
  withPod,
} from './index.ts';
import {
  aCluster,
  aNode,
  aPod,
  HOSTNAME,
  type PodOptions,
  select,
  ZONE,
} from './testing/builders.ts';

const CPU_1 = { containers: [{ resources: { requests: { cpu: '1' } } }] };

const NODES = [{ name: 'a' }, { name: 'b' }, { name: 'c', allocatable: { cpu: '1' } }];

function drain(
  pods: readonly PodOptions[],
  names: readonly string[] = ['a'],
  options = {},
): DrainSimulation {
  return simulateDrain(aCluster({ nodes: NODES, pods }), names, options);
}

function moves(result: DrainSimulation): readonly (readonly string[])[] {
  return result.moves.map(({ pod, from, to }) => [pod.name, from, to]);
}

describe('simulateDrain', () => {
  test('succeeds for a node without pods', () => {
    expect(drain([])).toEqual({ isPossible: true, moves: [] });
  });

  test('finds the tightest fitting node for every pod', () => {
    const result = drain([
      { name: '1', on: 'a', cpu: '1' },
      { name: '2', on: 'a', cpu: '2' },
    ]);
    expect(result.isPossible).toBe(true);
    expect(moves(result)).toEqual([
      ['2', 'a', 'b'],
      ['1', 'a', 'c'],
    ]);
  });

  test('returns each pod that fits nowhere, with the reasons for every node', () => {
    const result = drain([
      { name: 'large', on: 'a', cpu: '3' },
      { name: 'small', on: 'a', cpu: '1' },
      { name: 'there', on: 'b', cpu: '2' },
    ]);
    expect(result.isPossible).toBe(false);
    expect(moves(result)).toEqual([['small', 'a', 'c']]);
    expect(!result.isPossible && result.unmovable).toMatchObject([
      {
        pod: { name: 'large' },
        from: 'a',
        nodes: [
          {
            node: 'b',
            reasons: [{ shortfalls: [{ requested: 3000, used: 2000, allocatable: 4000 }] }],
          },
          { node: 'c', reasons: [{ filter: 'NodeResourcesFit' }] },
        ],
      },
    ]);
  });

  test('keeps a place for a terminating pod of a StatefulSet, which is created again when it is gone', () => {
    const going = { name: 'going', on: 'a', cpu: '4', terminating: true };
    expect(moves(drain([{ ...going, controller: 'StatefulSet' }]))).toEqual([['going', 'a', 'b']]);
    const next = { name: 'next', on: 'c', cpu: '1' };
    const result = drain([{ ...going, controller: 'StatefulSet' }, next], ['a', 'c']);
    expect(result.isPossible).toBe(false);
    expect(drain([{ ...going, controller: 'ReplicaSet' }, next], ['a', 'c']).isPossible).toBe(true);
  });

  test('counts a terminating pod of a StatefulSet in its new place', () => {
    const labels = { app: 'db' };
    const spread = {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: HOSTNAME,
          whenUnsatisfiable: 'DoNotSchedule' as const,
          labelSelector: select(labels),
        },
      ],
    };
    const pod = { on: 'a', cpu: '100m', labels, controller: 'StatefulSet', spec: { ...spread } };
    const result = drain([
      { ...pod, name: 'db-0', terminating: true },
      { ...pod, name: 'db-1' },
    ]);
    expect(new Set(result.moves.map(({ to }) => to))).toEqual(new Set(['b', 'c']));
  });

  test('ignores DaemonSet pods, static pods and terminating pods', () => {
    const result = drain([
      { name: 'daemon', on: 'a', cpu: '4', controller: 'DaemonSet' },
      { name: 'going', on: 'a', cpu: '4', terminating: true },
    ]);
    expect(result).toEqual({ isPossible: true, moves: [] });
    const replica = drain([{ on: 'a', cpu: '4', controller: 'ReplicaSet' }]);
    expect(moves(replica)).toEqual([['pod', 'a', 'b']]);
  });

  test('ignores expendable pods', () => {
    const pods = [
      { on: 'a', cpu: '4', priority: -20 },
      { name: 'full', on: 'b', cpu: '4' },
    ];
    expect(drain(pods).isPossible).toBe(false);
    expect(drain(pods, ['a'], { expendableBelow: -10 }).isPossible).toBe(true);
    expect(drain(pods, ['a'], { expendableBelow: -20 }).isPossible).toBe(false);
  });

  test('drains several nodes together without moving pods between them', () => {
    const pods = [
      { name: '1', on: 'a', cpu: '1' },
      { name: '2', on: 'b', cpu: '1' },
    ];
    const result = drain(pods, ['a', 'b']);
    expect(result.isPossible).toBe(false);
    expect(moves(result)).toEqual([['1', 'a', 'c']]);
    expect(
      !result.isPossible && result.unmovable.map(({ nodes }) => nodes.map(({ node }) => node)),
    ).toEqual([['c']]);
  });

  test('does not use nodes to be avoided', () => {
    const avoid = new Set(['b']);
    const result = drain([{ on: 'a', cpu: '2' }], ['a'], { avoid });
    expect(!result.isPossible && result.unmovable[0]?.nodes.map(({ node }) => node)).toEqual(['c']);
  });

  test('applies affinity between the moved pods', () => {
    const apart = {
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: HOSTNAME, labelSelector: select({ app: 'x' }) },
          ],
        },
      },
    };
    const pod = (name: string, on: string): PodOptions => ({
      name,
      labels: { app: 'x' },
      spec: { nodeName: on, ...apart },
    });
    expect(drain([pod('1', 'a'), pod('2', 'b')]).isPossible).toBe(true);
    expect(drain([pod('1', 'a'), pod('2', 'b'), pod('3', 'c')]).isPossible).toBe(false);
  });

  test('counts a drained node as a topology domain until it is deleted', () => {
    const nodes = [
      { name: 'a', zone: 'x' },
      { name: 'b', zone: 'y' },
    ];
    const spread = (name: string, on: string): PodOptions => ({
      name,
      labels: { app: 'x' },
      spec: {
        nodeName: on,
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: ZONE,
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: select({ app: 'x' }),
          },
        ],
      },
    });
    const snapshot = aCluster({ nodes, pods: [spread('1', 'a'), spread('2', 'b')] });
    expect(moves(simulateDrain(snapshot, ['a'], { isAfterDeletion: true }))).toEqual([
      ['1', 'a', 'b'],
    ]);
    const before = simulateDrain(snapshot, ['a']);
    expect(!before.isPossible && before.unmovable).toMatchObject([
      { pod: { name: '1' }, nodes: [{ node: 'b', reasons: [{ filter: 'PodTopologySpread' }] }] },
    ]);
    const attempt = simulateDrains(snapshot, { avoid: new Set() }, (tryDrain) => tryDrain('a'));
    expect(attempt).toMatchObject({ isPossible: false, left: [{ name: '1' }] });
    const roomy = aCluster({ nodes, pods: [spread('1', 'a')] });
    expect(moves(simulateDrain(roomy, ['a']))).toEqual([['1', 'a', 'b']]);
  });

  test('moves no pod to a node that was drained before', () => {
    const snapshot = aCluster({
      nodes: [{ name: 'a' }, { name: 'b' }],
      pods: [{ on: 'b', cpu: '1' }],
    });
    const attempts = simulateDrains(snapshot, { avoid: new Set() }, (tryDrain) => [
      tryDrain('a').isPossible,
      tryDrain('b').isPossible,
    ]);
    expect(attempts).toEqual([true, false]);
    expect(simulateDrain(snapshot, ['b']).isPossible).toBe(true);
  });

  test('drains a node once if its name is given twice', () => {
    const pods = [{ on: 'a', cpu: '1' }];
    expect(drain(pods, ['a', 'a'])).toEqual(drain(pods, ['a']));
  });

  test('places pods with a node selector before larger pods that fit elsewhere', () => {
    const nodes = [
      { name: 'a' },
      { name: 'b', zone: 'x', allocatable: { cpu: '2' } },
      { name: 'c', zone: 'y', allocatable: { cpu: '3' } },
    ];
    const pods = [
      { name: 'large', on: 'a', cpu: '2' },
      { name: 'small', cpu: '1', spec: { nodeName: 'a', nodeSelector: { [ZONE]: 'x' }, ...CPU_1 } },
    ];
    const result = simulateDrain(aCluster({ nodes, pods }), ['a']);
    expect(moves(result).toSorted()).toEqual([
      ['large', 'a', 'c'],
      ['small', 'a', 'b'],
    ]);
  });

  test('finds the only combination of nodes that holds all pods', () => {
    const nodes = [
      { name: 'a', allocatable: { cpu: '10' } },
      { name: 'b', allocatable: { cpu: '4' } },
      { name: 'c', allocatable: { cpu: '5' } },
    ];
    // Large pods first would put 3 on b and leave 2 + 2 + 2 for c.
    const pods = [3, 2, 2, 2].map((cpu, i) => ({ name: `${i}`, on: 'a', cpu: `${cpu}` }));
    expect(simulateDrain(aCluster({ nodes, pods }), ['a']).isPossible).toBe(true);
  });

  test('keeps the space of nominated pods on other nodes, whatever their priority', () => {
    const nominated = (priority: number): PodOptions => ({
      name: 'nominated',
      cpu: '3',
      priority,
      status: { nominatedNodeName: 'b' },
    });
    const pods = [{ on: 'a', cpu: '2', priority: 5 }];
    expect(drain(pods).isPossible).toBe(true);
    for (const priority of [0, 9]) {
      const result = drain([...pods, nominated(priority)]);
      expect(!result.isPossible && result.unmovable[0]?.nodes[0]).toMatchObject({
        node: 'b',
        reasons: [{ shortfalls: [{ resource: 'cpu', used: 3000 }] }],
      });
    }
  });

  test('needs another node for a pod that is nominated to a drained one', () => {
    const nominated = { name: 'n', cpu: '2', status: { nominatedNodeName: 'a' } };
    expect(moves(drain([nominated]))).toEqual([['n', 'a', 'b']]);
    const result = drain([nominated, { on: 'b', cpu: '3' }]);
    expect(!result.isPossible && result.unmovable.map(({ pod }) => pod.name)).toEqual(['n']);
  });

  test('uses the current free space after the snapshot was changed elsewhere', () => {
    const snapshot = aCluster({ nodes: NODES, pods: [{ on: 'a', cpu: '2' }] });
    expect(simulateDrain(snapshot, ['a']).isPossible).toBe(true);
    const full = withPod(snapshot, aPod({ name: 'other', cpu: '3' }), 'b');
    expect(simulateDrain(full, ['a']).isPossible).toBe(false);
    expect(simulateDrain(snapshot, ['a']).isPossible).toBe(true);
    const larger = withNodes(full, [aNode({ name: 'd' })]);
    expect(moves(simulateDrain(larger, ['a']))).toEqual([['pod', 'a', 'd']]);
    expect(simulateDrain(full, ['a']).isPossible).toBe(false);
    expect(simulateDrain(withoutNodes(larger, ['d']), ['a']).isPossible).toBe(false);
  });

  test('explains an unmovable pod after other snapshots were used', () => {
    const snapshot = aCluster({
      nodes: NODES,
      pods: [
        { on: 'a', cpu: '3' },
        { name: 'x', on: 'b', cpu: '2' },
      ],
    });
    const result = simulateDrain(snapshot, ['a']);
    const emptied = withoutNodes(snapshot, ['b']);
    expect(emptied.nodes).toHaveLength(2);
    expect(!result.isPossible && result.unmovable[0]?.nodes.map(({ node }) => node)).toEqual([
      'b',
      'c',
    ]);
    expect(snapshot.podsOn('a')).toHaveLength(1);
  });

  test('does not change the snapshot', () => {
    const snapshot = aCluster({ nodes: NODES, pods: [{ on: 'a', cpu: '1' }] });
    const first = simulateDrain(snapshot, ['a']);
    expect(simulateDrain(snapshot, ['a'])).toEqual(first);
    expect(snapshot.podsOn('a')).toHaveLength(1);
    expect(snapshot.nodes).toHaveLength(3);
  });

  test('throws for a node that is not in the snapshot', () => {
    expect(() => simulateDrain(aCluster(), ['unknown'])).toThrow(
      "node 'unknown' is not in this snapshot",
    );
  });
});
