// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { simulateDrains, withExpectedNodes, withFittingPods, withPods } from './index.ts';
import { aCluster, aNode, aPod } from './testing/builders.ts';

const nodes = ['a', 'b', 'c'].map((name) => ({ name }));

describe('simulateDrains', () => {
  test('lets each drain see the pods that earlier ones moved', () => {
    const pods = [
      { name: 'on-a', on: 'a', cpu: '1500m' },
      { name: 'on-b', on: 'b', cpu: '1500m' },
      { name: 'on-c', on: 'c', cpu: '2' },
    ];
    const snapshot = aCluster({ nodes, pods });
    const avoid = new Set(['b']);
    const [first, second] = simulateDrains(snapshot, { avoid }, (tryDrain) => [
      tryDrain('a'),
      tryDrain('b'),
    ]);
    expect(first).toMatchObject({ isPossible: true, moves: [{ from: 'a', to: 'c' }] });
    expect(second).toMatchObject({ isPossible: false, left: [{ name: 'on-b' }] });
    expect(snapshot.podsOn('a').map(({ name }) => name)).toEqual(['on-a']);
  });

  test('places the largest pods first, each on the emptiest node, if asked to do as kube-scheduler', () => {
    const pods = [
      { name: 'small', on: 'a', cpu: '500m' },
      { name: 'large', on: 'a', cpu: '2' },
      { name: 'on-b', on: 'b', cpu: '1' },
      { name: 'on-c', on: 'c', cpu: '2' },
    ];
    const options = { avoid: new Set<string>(), asScheduled: true };
    const { moves } = simulateDrains(aCluster({ nodes, pods }), options, (tryDrain) =>
      tryDrain('a'),
    );
    expect(moves.map(({ pod, to }) => `${pod.name} → ${to}`)).toEqual(['large → b', 'small → c']);
  });

  test('chooses among nodes that kube-scheduler prefers equally as the caller says', () => {
    const cluster = aCluster({ nodes, pods: [{ name: 'on-a', on: 'a', cpu: '1' }] });
    const targets = [0, 1].map((index) => {
      const options = {
        avoid: new Set<string>(),
        asScheduled: true,
        chooseTied: (count: number) => index % count,
      };
      return simulateDrains(cluster, options, (tryDrain) => tryDrain('a').moves[0]?.to);
    });
    expect(targets.toSorted()).toEqual(['b', 'c']);
  });

  test('keeps nothing of a drain that is not possible', () => {
    const pods = [
      { name: 'large', on: 'a', cpu: '4' },
      { name: 'small', on: 'a', cpu: '0' },
      { name: 'on-b', on: 'b', cpu: '3500m' },
      { name: 'on-c', on: 'c', cpu: '500m' },
    ];
    const results = simulateDrains(aCluster({ nodes, pods }), { avoid: new Set() }, (tryDrain) =>
      ['a', 'b', 'c'].map((name) => tryDrain(name).isPossible),
    );
    expect(results).toEqual([false, true, false]);
  });

  test('restores the snapshot when the work throws', () => {
    const snapshot = aCluster({ nodes, pods: [{ name: 'on-a', on: 'a' }] });
    expect(() =>
      simulateDrains(snapshot, { avoid: new Set() }, (tryDrain) => {
        tryDrain('a');
        throw new Error('stop');
      }),
    ).toThrow('stop');
    expect(snapshot.nodes.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  });

  test('refuses a node that is not in the snapshot', () => {
    expect(() =>
      simulateDrains(aCluster({ nodes }), { avoid: new Set() }, (tryDrain) => tryDrain('x')),
    ).toThrow("node 'x' is not in this snapshot");
  });
});

describe('withExpectedNodes', () => {
  const daemonSets = [
    {
      metadata: { name: 'agent', namespace: 'default', uid: 'ds' },
      spec: { template: { spec: { containers: [{ resources: { requests: { cpu: '500m' } } }] } } },
    },
  ];

  test('adds nodes with the DaemonSet pods that they will run', () => {
    const after = withExpectedNodes(aCluster({ nodes: [], daemonSets }), [aNode({ name: 'new' })]);
    expect(after.podsOn('new').map(({ name }) => name)).toEqual(['agent-new']);
  });

  test('replaces a node of the same name, keeps its pods, and adds no DaemonSet pod twice', () => {
    const pods = [
      { name: 'web', on: 'a' },
      { name: 'agent-x', on: 'a', controller: 'DaemonSet' },
    ];
    const snapshot = aCluster({ nodes: [{ name: 'a', unschedulable: true }], pods });
    const after = withExpectedNodes(snapshot, [aNode({ name: 'a' })]);
    expect(after.nodes).toMatchObject([{ name: 'a', isUnschedulable: false }]);
    expect(after.podsOn('a')).toHaveLength(2);
    expect(snapshot.nodes).toMatchObject([{ isUnschedulable: true }]);
  });
});

test('withFittingPods places only pods that fit, one after the other', () => {
  const pods = ['x', 'y'].map((name) => ({ pod: aPod({ name, cpu: '3' }), node: 'a' }));
  const missing = { pod: aPod({ name: 'z' }), node: 'gone' };
  const { snapshot, placed } = withFittingPods(aCluster({ nodes }), [...pods, missing]);
  expect(placed.map(({ pod }) => pod.name)).toEqual(['x']);
  expect(snapshot.podsOn('a').map(({ name }) => name)).toEqual(['x']);
});

test('withPods places pods whether or not they fit', () => {
  const pods = ['x', 'y'].map((name) => ({ pod: aPod({ name, cpu: '3' }), node: 'a' }));
  expect(withPods(aCluster({ nodes }), pods).podsOn('a')).toHaveLength(2);
});
