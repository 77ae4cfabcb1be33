// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { PodAffinityTermSource } from '../../model/pod-affinity.ts';
import { checkFit } from '../index.ts';
import {
  aCluster,
  aPod,
  type ClusterOptions,
  HOSTNAME,
  type PodOptions,
  select,
  ZONE,
} from '../testing/builders.ts';

const APP = { app: 'x' };

function term(over: PodAffinityTermSource = {}): PodAffinityTermSource {
  return { topologyKey: ZONE, labelSelector: select(APP), ...over };
}

function affinity(...terms: PodAffinityTermSource[]): PodOptions['spec'] & object {
  return {
    affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
  };
}

function antiAffinity(...terms: PodAffinityTermSource[]): PodOptions['spec'] & object {
  return {
    affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
  };
}

const NODES = [
  { name: 'a1', zone: 'a' },
  { name: 'a2', zone: 'a' },
  { name: 'b1', zone: 'b' },
];

function where(cluster: ClusterOptions, pod: PodOptions): readonly string[] {
  const snapshot = aCluster({ nodes: NODES, ...cluster });
  return (cluster.nodes ?? NODES)
    .map(({ name }) => name ?? '')
    .filter((name) => checkFit(snapshot, aPod({ name: 'new', ...pod }), name).fits);
}

function reasons(cluster: ClusterOptions, pod: PodOptions, node: string): unknown {
  const verdict = checkFit(
    aCluster({ nodes: NODES, ...cluster }),
    aPod({ name: 'new', ...pod }),
    node,
  );
  return verdict.fits ? [] : verdict.reasons;
}

function on(node: string, over: PodOptions = {}): PodOptions {
  return { name: `on-${node}`, labels: APP, on: node, ...over };
}

describe('pod affinity', () => {
  test('accepts nodes in the domain of a matching pod', () => {
    const cluster = { pods: [on('a1')] };
    expect(where(cluster, { spec: affinity(term()) })).toEqual(['a1', 'a2']);
    expect(where(cluster, { spec: affinity(term({ topologyKey: HOSTNAME })) })).toEqual(['a1']);
    expect(reasons(cluster, { spec: affinity(term()) }, 'b1')).toEqual([
      { filter: 'InterPodAffinity', problem: 'no-matching-pod', topologyKey: ZONE },
    ]);
  });

  test('rejects a node without the topology key', () => {
    const nodes = [...NODES, { name: 'bare' }];
    const cluster = { nodes, pods: [on('a1'), on('bare')] };
    expect(where(cluster, { spec: affinity(term()) })).toEqual(['a1', 'a2']);
    expect(reasons(cluster, { spec: affinity(term()) }, 'bare')).toEqual([
      { filter: 'InterPodAffinity', problem: 'label-missing', topologyKey: ZONE },
    ]);
  });

  test('requires one running pod that matches all terms', () => {
    const tier = term({ labelSelector: select({ tier: 'db' }) });
    const spec = affinity(term(), tier);
    expect(where({ pods: [on('a1'), on('a2', { labels: { tier: 'db' } })] }, { spec })).toEqual([]);
    expect(where({ pods: [on('a1', { labels: { ...APP, tier: 'db' } })] }, { spec })).toEqual([
      'a1',
      'a2',
    ]);
  });

  test('allows different pods to satisfy different keys', () => {
    const nodes = [
      { name: 'n1', zone: 'a', labels: { rack: '1' } },
      { name: 'n2', zone: 'b', labels: { rack: '2' } },
      { name: 'n3', zone: 'a', labels: { rack: '2' } },
    ];
    const spec = affinity(term(), term({ topologyKey: 'rack' }));
    expect(where({ nodes, pods: [on('n1'), on('n2')] }, { spec })).toEqual(['n1', 'n2', 'n3']);
  });

  describe('the first pod of a series', () => {
    const self = { labels: APP, spec: affinity(term()) };

    test('may be placed anywhere while no pod matches', () => {
      expect(where({}, self)).toEqual(['a1', 'a2', 'b1']);
      expect(where({ pods: [on('b1')] }, self)).toEqual(['b1']);
      expect(where({}, { spec: affinity(term()) })).toEqual([]);
    });

    test('ignores pods on nodes without the key', () => {
      const nodes = [...NODES, { name: 'bare' }];
      expect(where({ nodes, pods: [on('bare')] }, self)).toEqual(['a1', 'a2', 'b1']);
    });

    test('still needs every topology key', () => {
      const nodes = [{ name: 'a1', zone: 'a' }, { name: 'bare' }];
      expect(where({ nodes }, self)).toEqual(['a1']);
      const both = { labels: APP, spec: affinity(term(), term({ topologyKey: 'rack' })) };
      expect(where({ nodes }, both)).toEqual([]);
    });

    test('is not the first if any key has a match', () => {
      const nodes = [
        { name: 'n1', zone: 'a', labels: { rack: '1' } },
        { name: 'n2', labels: { rack: '2' } },
        { name: 'n3', zone: 'b', labels: { rack: '1' } },
      ];
      const both = { labels: APP, spec: affinity(term(), term({ topologyKey: 'rack' })) };
      expect(where({ nodes, pods: [on('n2')] }, both)).toEqual([]);
      expect(where({ nodes }, both)).toEqual(['n1', 'n3']);
    });

    test('must match all of its own terms', () => {
      const spec = affinity(term(), term({ labelSelector: select({ tier: 'db' }) }));
      expect(where({}, { labels: APP, spec })).toEqual([]);
      expect(where({}, { labels: { ...APP, tier: 'db' }, spec })).toHaveLength(3);
    });
  });

  test('counts terminating pods', () => {
    expect(where({ pods: [on('a1', { terminating: true })] }, { spec: affinity(term()) })).toEqual([
      'a1',
      'a2',
    ]);
  });
});

describe('pod anti-affinity', () => {
  test('rejects domains with a matching pod', () => {
    const cluster = { pods: [on('a1')] };
    expect(where(cluster, { spec: antiAffinity(term()) })).toEqual(['b1']);
    expect(where(cluster, { spec: antiAffinity(term({ topologyKey: HOSTNAME })) })).toEqual([
      'a2',
      'b1',
    ]);
    expect(reasons(cluster, { spec: antiAffinity(term()) }, 'a2')).toEqual([
      {
        filter: 'InterPodAffinity',
        problem: 'own-anti-affinity',
        topologyKey: ZONE,
        domain: 'a',
        pods: 1,
      },
    ]);
  });

  test('rejects if a single term matches', () => {
    const spec = antiAffinity(term(), term({ labelSelector: select({ tier: 'db' }) }));
    expect(where({ pods: [on('a1'), on('b1', { labels: { tier: 'db' } })] }, { spec })).toEqual([]);
  });

  test('accepts a node without the topology key', () => {
    const nodes = [...NODES, { name: 'bare' }];
    expect(where({ nodes, pods: [on('a1'), on('bare')] }, { spec: antiAffinity(term()) })).toEqual([
      'b1',
      'bare',
    ]);
  });

  test('of running pods rejects the pending pod too', () => {
    const cluster = {
      pods: [on('a1', { labels: {}, spec: { nodeName: 'a1', ...antiAffinity(term()) } })],
    };
    expect(where(cluster, { labels: APP })).toEqual(['b1']);
    expect(where(cluster, { labels: { app: 'y' } })).toHaveLength(3);
    expect(reasons(cluster, { labels: APP }, 'a2')).toEqual([
      {
        filter: 'InterPodAffinity',
        problem: 'existing-anti-affinity',
        topologyKey: ZONE,
        domain: 'a',
        pods: 1,
      },
    ]);
  });

  test('of a running pod on a node without the key has no effect', () => {
    const nodes = [...NODES, { name: 'bare' }];
    const cluster = {
      nodes,
      pods: [on('bare', { spec: { nodeName: 'bare', ...antiAffinity(term()) } })],
    };
    expect(where(cluster, { labels: APP })).toHaveLength(4);
  });
});

describe('namespaces of an affinity term', () => {
  const namespaces = [
    { metadata: { name: 'default', labels: { team: 'red' } } },
    { metadata: { name: 'blue', labels: { team: 'blue' } } },
    { metadata: { name: 'plain' } },
  ];
  const inBlue = { namespaces, pods: [on('a1', { namespace: 'blue' })] };

  test("default to the pod's own namespace", () => {
    expect(where(inBlue, { spec: antiAffinity(term()) })).toHaveLength(3);
    expect(where({ pods: [on('a1')] }, { spec: antiAffinity(term()) })).toEqual(['b1']);
  });

  test("named in the term replace the pod's own", () => {
    const spec = antiAffinity(term({ namespaces: ['blue'] }));
    expect(where(inBlue, { spec })).toEqual(['b1']);
    expect(where({ namespaces, pods: [on('a1')] }, { spec })).toHaveLength(3);
  });

  test.each<[object, boolean]>([
    [{}, true],
    [select({ team: 'blue' }), true],
    [select({ team: 'red' }), false],
    [{ matchExpressions: [{ key: 'team', operator: 'Exists' }] }, true],
  ])('selected by %j of a pending pod: %s', (namespaceSelector, isMeant) => {
    const spec = antiAffinity(term({ namespaceSelector }));
    expect(where(inBlue, { spec })).toHaveLength(isMeant ? 1 : 3);
  });

  test.each([
    { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['blue'] }] },
    { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] },
  ])('are all selected by the negative selector %j of a pending pod', (namespaceSelector) => {
    expect(where(inBlue, { spec: antiAffinity(term({ namespaceSelector })) })).toEqual(['b1']);
  });

  test('are selected literally for a term of a running pod', () => {
    const holder = (namespaceSelector: object): ClusterOptions => ({
      namespaces,
      pods: [
        on('a1', {
          labels: {},
          spec: { nodeName: 'a1', ...antiAffinity(term({ namespaceSelector })) },
        }),
      ],
    });
    const notBlue = { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['blue'] }] };
    const pod = (namespace: string): PodOptions => ({ namespace, labels: APP });
    expect(where(holder(notBlue), pod('blue'))).toHaveLength(3);
    expect(where(holder(notBlue), pod('default'))).toEqual(['b1']);
    expect(where(holder(notBlue), pod('unknown'))).toEqual(['b1']);
    expect(where(holder(select({ team: 'blue' })), pod('blue'))).toEqual(['b1']);
    expect(where(holder(select({ team: 'blue' })), pod('unknown'))).toHaveLength(3);
  });

  test('combine names and selector', () => {
    const spec = antiAffinity(
      term({ namespaces: ['plain'], namespaceSelector: select({ team: 'blue' }) }),
    );
    expect(where(inBlue, { spec })).toEqual(['b1']);
    expect(where({ namespaces, pods: [on('a1', { namespace: 'plain' })] }, { spec })).toEqual([
      'b1',
    ]);
    expect(where({ namespaces, pods: [on('a1')] }, { spec })).toHaveLength(3);
  });

  test('have no labels if they are unknown', () => {
    const cluster = { pods: [on('a1', { namespace: 'blue' })] };
    expect(
      where(cluster, { spec: antiAffinity(term({ namespaceSelector: select({ team: 'blue' }) })) }),
    ).toHaveLength(3);
  });
});

describe('label keys of an affinity term', () => {
  test("add the pod's own values to the selector (matchLabelKeys, mismatchLabelKeys)", () => {
    const labels = { ...APP, rev: '2' };
    const old = on('a1', { labels: { ...APP, rev: '1' } });
    const match = antiAffinity(term({ matchLabelKeys: ['rev'] }));
    const mismatch = antiAffinity(term({ mismatchLabelKeys: ['rev'] }));
    expect(where({ pods: [old] }, { labels, spec: match })).toHaveLength(3);
    expect(where({ pods: [old] }, { labels, spec: mismatch })).toEqual(['b1']);
    const same = on('a1', { labels });
    expect(where({ pods: [same] }, { labels, spec: match })).toEqual(['b1']);
    expect(where({ pods: [same] }, { labels, spec: mismatch })).toHaveLength(3);
  });

  test('select pods without the label for mismatchLabelKeys', () => {
    const mismatch = antiAffinity(term({ mismatchLabelKeys: ['rev'] }));
    const bare = on('a1');
    expect(where({ pods: [bare] }, { labels: { ...APP, rev: '2' }, spec: mismatch })).toEqual([
      'b1',
    ]);
  });

  test('are not added twice if the API server has merged them', () => {
    const merged = antiAffinity(
      term({
        labelSelector: { matchExpressions: [{ key: 'rev', operator: 'In', values: ['1'] }] },
        matchLabelKeys: ['rev'],
      }),
    );
    const old = on('a1', { labels: { rev: '1' } });
    expect(where({ pods: [old] }, { labels: { rev: '2' }, spec: merged })).toEqual(['b1']);
  });

  test('select nothing without a selector', () => {
    const none = antiAffinity(term({ labelSelector: null, matchLabelKeys: ['app'] }));
    expect(where({ pods: [on('a1')] }, { labels: APP, spec: none })).toHaveLength(3);
  });
});
