// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { PodAffinityTermSource } from '../../model/pod-affinity.ts';
import { fits } from '../index.ts';
import {
  aCluster,
  aPod,
  type ClusterWish,
  HOSTNAME,
  type PodWish,
  select,
  ZONE,
} from '../testing/builders.ts';

const APP = { app: 'x' };

function term(over: PodAffinityTermSource = {}): PodAffinityTermSource {
  return { topologyKey: ZONE, labelSelector: select(APP), ...over };
}

function near(...terms: PodAffinityTermSource[]): PodWish['spec'] & object {
  return {
    affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
  };
}

function apart(...terms: PodAffinityTermSource[]): PodWish['spec'] & object {
  return {
    affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
  };
}

const NODES = [
  { name: 'a1', zone: 'a' },
  { name: 'a2', zone: 'a' },
  { name: 'b1', zone: 'b' },
];

function where(cluster: ClusterWish, pod: PodWish): readonly string[] {
  const snapshot = aCluster({ nodes: NODES, ...cluster });
  return (cluster.nodes ?? NODES)
    .map(({ name }) => name ?? '')
    .filter((name) => fits(snapshot, aPod({ name: 'new', ...pod }), name).fits);
}

function reasons(cluster: ClusterWish, pod: PodWish, node: string): unknown {
  const verdict = fits(aCluster({ nodes: NODES, ...cluster }), aPod({ name: 'new', ...pod }), node);
  return verdict.fits ? [] : verdict.reasons;
}

function on(node: string, over: PodWish = {}): PodWish {
  return { name: `on-${node}`, labels: APP, on: node, ...over };
}

describe('affinity', () => {
  test('a pod goes where a pod is that it wants near', () => {
    const cluster = { pods: [on('a1')] };
    expect(where(cluster, { spec: near(term()) })).toEqual(['a1', 'a2']);
    expect(where(cluster, { spec: near(term({ topologyKey: HOSTNAME })) })).toEqual(['a1']);
    expect(reasons(cluster, { spec: near(term()) }, 'b1')).toEqual([
      { filter: 'InterPodAffinity', problem: 'nobody-there', topologyKey: ZONE },
    ]);
  });

  test('a node without the key will not do', () => {
    const nodes = [...NODES, { name: 'bare' }];
    const cluster = { nodes, pods: [on('a1'), on('bare')] };
    expect(where(cluster, { spec: near(term()) })).toEqual(['a1', 'a2']);
    expect(reasons(cluster, { spec: near(term()) }, 'bare')).toEqual([
      { filter: 'InterPodAffinity', problem: 'label-missing', topologyKey: ZONE },
    ]);
  });

  test('one running pod must be meant by all terms', () => {
    const tier = term({ labelSelector: select({ tier: 'db' }) });
    const spec = near(term(), tier);
    expect(where({ pods: [on('a1'), on('a2', { labels: { tier: 'db' } })] }, { spec })).toEqual([]);
    expect(where({ pods: [on('a1', { labels: { ...APP, tier: 'db' } })] }, { spec })).toEqual([
      'a1',
      'a2',
    ]);
  });

  test('different such pods may satisfy different keys', () => {
    const nodes = [
      { name: 'n1', zone: 'a', labels: { rack: '1' } },
      { name: 'n2', zone: 'b', labels: { rack: '2' } },
      { name: 'n3', zone: 'a', labels: { rack: '2' } },
    ];
    const spec = near(term(), term({ topologyKey: 'rack' }));
    expect(where({ nodes, pods: [on('n1'), on('n2')] }, { spec })).toEqual(['n1', 'n2', 'n3']);
  });

  describe('the first of a series', () => {
    const self = { labels: APP, spec: near(term()) };

    test('may start anywhere as long as nobody is there', () => {
      expect(where({}, self)).toEqual(['a1', 'a2', 'b1']);
      expect(where({ pods: [on('b1')] }, self)).toEqual(['b1']);
      expect(where({}, { spec: near(term()) })).toEqual([]);
    });

    test('does not see pods on nodes without the key', () => {
      const nodes = [...NODES, { name: 'bare' }];
      expect(where({ nodes, pods: [on('bare')] }, self)).toEqual(['a1', 'a2', 'b1']);
    });

    test('still needs every key', () => {
      const nodes = [{ name: 'a1', zone: 'a' }, { name: 'bare' }];
      expect(where({ nodes }, self)).toEqual(['a1']);
      const both = { labels: APP, spec: near(term(), term({ topologyKey: 'rack' })) };
      expect(where({ nodes }, both)).toEqual([]);
    });

    test('is none when any of the keys has a match', () => {
      const nodes = [
        { name: 'n1', zone: 'a', labels: { rack: '1' } },
        { name: 'n2', labels: { rack: '2' } },
        { name: 'n3', zone: 'b', labels: { rack: '1' } },
      ];
      const both = { labels: APP, spec: near(term(), term({ topologyKey: 'rack' })) };
      expect(where({ nodes, pods: [on('n2')] }, both)).toEqual([]);
      expect(where({ nodes }, both)).toEqual(['n1', 'n3']);
    });

    test('must satisfy all of its own terms', () => {
      const spec = near(term(), term({ labelSelector: select({ tier: 'db' }) }));
      expect(where({}, { labels: APP, spec })).toEqual([]);
      expect(where({}, { labels: { ...APP, tier: 'db' }, spec })).toHaveLength(3);
    });
  });

  test('terminating pods count', () => {
    expect(where({ pods: [on('a1', { terminating: true })] }, { spec: near(term()) })).toEqual([
      'a1',
      'a2',
    ]);
  });
});

describe('anti-affinity', () => {
  test('a pod stays away from what it refuses', () => {
    const cluster = { pods: [on('a1')] };
    expect(where(cluster, { spec: apart(term()) })).toEqual(['b1']);
    expect(where(cluster, { spec: apart(term({ topologyKey: HOSTNAME })) })).toEqual(['a2', 'b1']);
    expect(reasons(cluster, { spec: apart(term()) }, 'a2')).toEqual([
      {
        filter: 'InterPodAffinity',
        problem: 'refuses',
        topologyKey: ZONE,
        domain: 'a',
        pods: 1,
      },
    ]);
  });

  test('a single term is enough', () => {
    const spec = apart(term(), term({ labelSelector: select({ tier: 'db' }) }));
    expect(where({ pods: [on('a1'), on('b1', { labels: { tier: 'db' } })] }, { spec })).toEqual([]);
  });

  test('a node without the key is far from everybody', () => {
    const nodes = [...NODES, { name: 'bare' }];
    expect(where({ nodes, pods: [on('a1'), on('bare')] }, { spec: apart(term()) })).toEqual([
      'b1',
      'bare',
    ]);
  });

  test('running pods refuse, too', () => {
    const cluster = {
      pods: [on('a1', { labels: {}, spec: { nodeName: 'a1', ...apart(term()) } })],
    };
    expect(where(cluster, { labels: APP })).toEqual(['b1']);
    expect(where(cluster, { labels: { app: 'y' } })).toHaveLength(3);
    expect(reasons(cluster, { labels: APP }, 'a2')).toEqual([
      {
        filter: 'InterPodAffinity',
        problem: 'refused-by',
        topologyKey: ZONE,
        domain: 'a',
        pods: 1,
      },
    ]);
  });

  test('who refuses without having the key refuses nobody', () => {
    const nodes = [...NODES, { name: 'bare' }];
    const cluster = { nodes, pods: [on('bare', { spec: { nodeName: 'bare', ...apart(term()) } })] };
    expect(where(cluster, { labels: APP })).toHaveLength(4);
  });
});

describe('namespaces', () => {
  const namespaces = [
    { metadata: { name: 'default', labels: { team: 'red' } } },
    { metadata: { name: 'blue', labels: { team: 'blue' } } },
    { metadata: { name: 'plain' } },
  ];
  const inBlue = { namespaces, pods: [on('a1', { namespace: 'blue' })] };

  test("without any the pod's own is meant", () => {
    expect(where(inBlue, { spec: apart(term()) })).toHaveLength(3);
    expect(where({ pods: [on('a1')] }, { spec: apart(term()) })).toEqual(['b1']);
  });

  test('named ones are meant instead of the own', () => {
    const spec = apart(term({ namespaces: ['blue'] }));
    expect(where(inBlue, { spec })).toEqual(['b1']);
    expect(where({ namespaces, pods: [on('a1')] }, { spec })).toHaveLength(3);
  });

  test.each<[object, boolean]>([
    [{}, true],
    [select({ team: 'blue' }), true],
    [select({ team: 'red' }), false],
    [{ matchExpressions: [{ key: 'team', operator: 'Exists' }] }, true],
  ])('the selector %j of a pending pod → %s', (namespaceSelector, isMeant) => {
    const spec = apart(term({ namespaceSelector }));
    expect(where(inBlue, { spec })).toHaveLength(isMeant ? 1 : 3);
  });

  test.each([
    { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['blue'] }] },
    { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] },
  ])('a negative selector %j of a pending pod means every namespace', (namespaceSelector) => {
    expect(where(inBlue, { spec: apart(term({ namespaceSelector })) })).toEqual(['b1']);
  });

  test('the same selector on a running pod means what it says', () => {
    const holder = (namespaceSelector: object): ClusterWish => ({
      namespaces,
      pods: [
        on('a1', {
          labels: {},
          spec: { nodeName: 'a1', ...apart(term({ namespaceSelector })) },
        }),
      ],
    });
    const notBlue = { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['blue'] }] };
    const pod = (namespace: string): PodWish => ({ namespace, labels: APP });
    expect(where(holder(notBlue), pod('blue'))).toHaveLength(3);
    expect(where(holder(notBlue), pod('default'))).toEqual(['b1']);
    expect(where(holder(notBlue), pod('unknown'))).toEqual(['b1']);
    expect(where(holder(select({ team: 'blue' })), pod('blue'))).toEqual(['b1']);
    expect(where(holder(select({ team: 'blue' })), pod('unknown'))).toHaveLength(3);
  });

  test('names and selector add up', () => {
    const spec = apart(
      term({ namespaces: ['plain'], namespaceSelector: select({ team: 'blue' }) }),
    );
    expect(where(inBlue, { spec })).toEqual(['b1']);
    expect(where({ namespaces, pods: [on('a1', { namespace: 'plain' })] }, { spec })).toEqual([
      'b1',
    ]);
    expect(where({ namespaces, pods: [on('a1')] }, { spec })).toHaveLength(3);
  });

  test('a namespace that nobody has heard of has no labels', () => {
    const cluster = { pods: [on('a1', { namespace: 'blue' })] };
    expect(
      where(cluster, { spec: apart(term({ namespaceSelector: select({ team: 'blue' }) })) }),
    ).toHaveLength(3);
  });
});

describe('label keys', () => {
  test("matchLabelKeys and mismatchLabelKeys add the pod's own values to the selector", () => {
    const labels = { ...APP, rev: '2' };
    const old = on('a1', { labels: { ...APP, rev: '1' } });
    const match = apart(term({ matchLabelKeys: ['rev'] }));
    const mismatch = apart(term({ mismatchLabelKeys: ['rev'] }));
    expect(where({ pods: [old] }, { labels, spec: match })).toHaveLength(3);
    expect(where({ pods: [old] }, { labels, spec: mismatch })).toEqual(['b1']);
    const same = on('a1', { labels });
    expect(where({ pods: [same] }, { labels, spec: match })).toEqual(['b1']);
    expect(where({ pods: [same] }, { labels, spec: mismatch })).toHaveLength(3);
  });

  test('NotIn also means pods that lack the label', () => {
    const mismatch = apart(term({ mismatchLabelKeys: ['rev'] }));
    const bare = on('a1');
    expect(where({ pods: [bare] }, { labels: { ...APP, rev: '2' }, spec: mismatch })).toEqual([
      'b1',
    ]);
  });

  test('what the API server has merged already stays as it is', () => {
    const merged = apart(
      term({
        labelSelector: { matchExpressions: [{ key: 'rev', operator: 'In', values: ['1'] }] },
        matchLabelKeys: ['rev'],
      }),
    );
    const old = on('a1', { labels: { rev: '1' } });
    expect(where({ pods: [old] }, { labels: { rev: '2' }, spec: merged })).toEqual(['b1']);
  });

  test('no selector means nobody, whatever the keys', () => {
    const none = apart(term({ labelSelector: null, matchLabelKeys: ['app'] }));
    expect(where({ pods: [on('a1')] }, { labels: APP, spec: none })).toHaveLength(3);
  });
});
