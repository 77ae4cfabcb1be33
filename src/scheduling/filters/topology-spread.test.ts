// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { PodSpecSource } from '../../model/pod-source.ts';
import type { SpreadConstraintSource } from '../../model/topology-spread.ts';
import { checkFit, type FitResult } from '../index.ts';
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

function spread(over: SpreadConstraintSource = {}): SpreadConstraintSource {
  return {
    maxSkew: 1,
    topologyKey: ZONE,
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: select(APP),
    ...over,
  };
}

function spreading(...constraints: SpreadConstraintSource[]): PodOptions {
  return { name: 'new', labels: APP, spec: { topologySpreadConstraints: constraints } };
}

const NODES = [
  { name: 'a1', zone: 'a' },
  { name: 'a2', zone: 'a' },
  { name: 'b1', zone: 'b' },
];

function pods(...on: string[]): readonly PodOptions[] {
  return on.map((name, i) => ({ name: `p${i}`, labels: APP, on: name }));
}

function where(cluster: ClusterOptions, pod: PodOptions): readonly string[] {
  const snapshot = aCluster({ nodes: NODES, ...cluster });
  return (cluster.nodes ?? NODES)
    .map(({ name }) => name ?? '')
    .filter((name) => checkFit(snapshot, aPod(pod), name).fits);
}

function reason(cluster: ClusterOptions, pod: PodOptions, node: string): unknown {
  const verdict: FitResult = checkFit(aCluster({ nodes: NODES, ...cluster }), aPod(pod), node);
  return verdict.fits ? undefined : verdict.reasons;
}

describe('PodTopologySpread', () => {
  test('allows a domain maxSkew pods more than the domain with the fewest', () => {
    expect(where({}, spreading(spread()))).toEqual(['a1', 'a2', 'b1']);
    expect(where({ pods: pods('a1') }, spreading(spread()))).toEqual(['b1']);
    expect(where({ pods: pods('a1') }, spreading(spread({ maxSkew: 2 })))).toHaveLength(3);
    expect(where({ pods: pods('a1', 'a2', 'b1') }, spreading(spread()))).toEqual(['b1']);
    expect(where({ pods: pods('a1', 'b1') }, spreading(spread()))).toHaveLength(3);
  });

  test('returns all numbers in the reason', () => {
    expect(reason({ pods: pods('a1', 'a2', 'b1') }, spreading(spread()), 'a1')).toEqual([
      {
        filter: 'PodTopologySpread',
        problem: 'skew',
        topologyKey: ZONE,
        domain: 'a',
        matching: 2,
        minimum: 1,
        self: 1,
        maxSkew: 1,
      },
    ]);
  });

  test('does not count the pod itself if it does not match its own selector', () => {
    const pod = { ...spreading(spread()), labels: { app: 'y' } };
    expect(where({ pods: pods('a1') }, pod)).toEqual(['a1', 'a2', 'b1']);
    expect(reason({ pods: pods('a1', 'a2') }, pod, 'a1')).toMatchObject([{ self: 0, matching: 2 }]);
  });

  test('ignores soft constraints (ScheduleAnyway)', () => {
    const soft = spread({ whenUnsatisfiable: 'ScheduleAnyway' });
    expect(where({ pods: pods('a1', 'a1') }, spreading(soft))).toHaveLength(3);
  });

  test('counts pods of the same namespace only', () => {
    const foreign = pods('a1').map((pod) => ({ ...pod, namespace: 'other' }));
    expect(where({ pods: foreign }, spreading(spread()))).toHaveLength(3);
  });

  test('ignores terminating pods', () => {
    const going = pods('a1').map((pod) => ({ ...pod, terminating: true }));
    expect(where({ pods: going }, spreading(spread()))).toHaveLength(3);
  });

  test('rejects and ignores nodes without the topology key', () => {
    const nodes = [...NODES, { name: 'bare' }];
    const cluster = { nodes, pods: pods('bare', 'bare') };
    expect(where(cluster, spreading(spread()))).toEqual(['a1', 'a2', 'b1']);
    expect(reason(cluster, spreading(spread()), 'bare')).toEqual([
      { filter: 'PodTopologySpread', problem: 'label-missing', topologyKey: ZONE },
    ]);
  });

  test('ignores nodes without the key of any constraint', () => {
    const nodes = [
      { name: 'a1', zone: 'a', labels: { rack: '1' } },
      { name: 'b1', zone: 'b' },
    ];
    const both = spreading(spread(), spread({ topologyKey: 'rack' }));
    // Zone b has no eligible node, so zone a is compared with itself only.
    expect(where({ nodes, pods: pods('a1', 'a1') }, both)).toEqual(['a1']);
    expect(where({ nodes, pods: pods('a1', 'a1') }, spreading(spread()))).toEqual(['b1']);
  });

  test('requires all constraints', () => {
    const both = spreading(spread(), spread({ topologyKey: HOSTNAME }));
    expect(where({ pods: pods('a1', 'b1') }, both)).toEqual(['a2']);
  });

  test('with an empty selector counts the pod itself, but no running pod', () => {
    const everything = spread({ labelSelector: {} });
    expect(where({ pods: pods('a1', 'a1', 'a1') }, spreading(everything))).toHaveLength(3);
    const zero = spreading(spread({ labelSelector: {}, maxSkew: 0 }));
    expect(reason({}, zero, 'a1')).toMatchObject([{ self: 1, matching: 0 }]);
    expect(
      where(
        { pods: pods('a1') },
        spreading(spread({ labelSelector: {}, matchLabelKeys: ['app'] })),
      ),
    ).toEqual(['b1']);
  });

  test('without a selector selects nothing', () => {
    const none = spread({ labelSelector: null, matchLabelKeys: ['app'] });
    expect(where({ pods: pods('a1', 'a1') }, spreading(none))).toHaveLength(3);
  });

  test("with matchLabelKeys selects only the pod's own label values", () => {
    const pod = {
      ...spreading(spread({ matchLabelKeys: ['rev', 'absent'] })),
      labels: { ...APP, rev: '2' },
    };
    const old = { name: 'old', labels: { ...APP, rev: '1' }, on: 'a1' };
    const same = { name: 'same', labels: { ...APP, rev: '2' }, on: 'a1' };
    expect(where({ pods: [old] }, pod)).toHaveLength(3);
    expect(where({ pods: [same] }, pod)).toEqual(['b1']);
  });

  test('takes the smallest count as 0 if there are fewer than minDomains domains', () => {
    const full = pods('a1', 'b1');
    expect(where({ pods: full }, spreading(spread({ minDomains: 2 })))).toHaveLength(3);
    expect(where({ pods: full }, spreading(spread({ minDomains: 3 })))).toEqual([]);
    expect(reason({ pods: full }, spreading(spread({ minDomains: 3 })), 'b1')).toMatchObject([
      { minimum: 0, matching: 1 },
    ]);
  });

  describe('nodeAffinityPolicy', () => {
    const onlyA: PodSpecSource = { nodeSelector: { [ZONE]: 'a' } };
    const pod = (over: SpreadConstraintSource): PodOptions => ({
      ...spreading(),
      spec: { ...onlyA, topologySpreadConstraints: [spread(over)] },
    });

    test('by default ignores nodes that the pod may not use', () => {
      expect(where({ pods: pods('a1', 'a1') }, pod({}))).toEqual(['a1', 'a2']);
      expect(where({ pods: pods('a1') }, pod({ nodeAffinityPolicy: 'Honor' }))).toEqual([
        'a1',
        'a2',
      ]);
    });

    test('with Ignore counts them', () => {
      expect(where({ pods: pods('a1') }, pod({ nodeAffinityPolicy: 'Ignore' }))).toEqual([]);
    });
  });

  describe('nodeTaintsPolicy', () => {
    const nodes = [
      { name: 'a1', zone: 'a' },
      { name: 'b1', zone: 'b', taints: [{ key: 'k', effect: 'NoSchedule' }] },
    ];

    test('by default counts tainted nodes', () => {
      expect(where({ nodes, pods: pods('a1') }, spreading(spread()))).toEqual([]);
    });

    test('with Honor ignores them unless the pod tolerates the taint', () => {
      const honor = spread({ nodeTaintsPolicy: 'Honor' });
      expect(where({ nodes, pods: pods('a1') }, spreading(honor))).toEqual(['a1']);
      const tolerant = {
        ...spreading(),
        spec: { topologySpreadConstraints: [honor], tolerations: [{ operator: 'Exists' }] },
      };
      expect(where({ nodes, pods: pods('a1') }, tolerant)).toEqual(['b1']);
    });

    test('does not treat a cordon as a taint', () => {
      const cordoned = [NODES[0] ?? {}, { name: 'b1', zone: 'b', unschedulable: true }];
      const honor = spread({ nodeTaintsPolicy: 'Honor' });
      expect(where({ nodes: cordoned, pods: pods('a1') }, spreading(honor))).toEqual([]);
    });
  });

  test('ignores pods on a node that is not eligible, but checks its domain', () => {
    const nodes = [
      { name: 'a1', zone: 'a' },
      { name: 'a2', zone: 'a', labels: { no: 'x' } },
      { name: 'b1', zone: 'b' },
    ];
    const pod: PodOptions = {
      ...spreading(),
      spec: {
        topologySpreadConstraints: [spread()],
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: 'no', operator: 'DoesNotExist' }] }],
            },
          },
        },
      },
    };
    expect(where({ nodes, pods: pods('a2', 'a2') }, pod)).toEqual(['a1', 'b1']);
    expect(where({ nodes, pods: pods('a1') }, pod)).toEqual(['b1']);
    expect(reason({ nodes, pods: pods('a1') }, pod, 'a2')).toMatchObject([
      { filter: 'NodeAffinity' },
      { filter: 'PodTopologySpread', matching: 1 },
    ]);
  });

  describe('two pods with the same selector', () => {
    const nodes = [
      { name: 'a1', zone: 'a' },
      { name: 'b1', zone: 'b', taints: [{ key: 'k', effect: 'NoSchedule' }] },
    ];
    const snapshot = aCluster({ nodes, pods: pods('a1') });
    const ask = (over: PodSpecSource, constraint: SpreadConstraintSource = {}): boolean =>
      checkFit(
        snapshot,
        aPod({ labels: APP, spec: { topologySpreadConstraints: [spread(constraint)], ...over } }),
        'a1',
      ).fits;

    test('have separate counts if their node affinity differs', () => {
      expect(ask({})).toBe(false);
      expect(ask({ nodeSelector: { [ZONE]: 'a' } })).toBe(true);
      expect(ask({ nodeSelector: { [HOSTNAME]: 'a1' } })).toBe(true);
      expect(ask({ nodeSelector: { [ZONE]: 'a' } }, { nodeAffinityPolicy: 'Ignore' })).toBe(false);
      expect(ask({ affinity: inZones('a') })).toBe(true);
      expect(ask({ affinity: inZones('a', 'b') })).toBe(false);
    });

    test('have separate counts if their tolerations differ', () => {
      const honor = { nodeTaintsPolicy: 'Honor' };
      expect(ask({}, honor)).toBe(true);
      expect(ask({ tolerations: [{ operator: 'Exists' }] }, honor)).toBe(false);
      expect(ask({ tolerations: [{ key: 'other', operator: 'Exists' }] }, honor)).toBe(true);
      expect(ask({})).toBe(false);
    });

    test('have separate counts if their namespaces or keys differ', () => {
      const foreign = aPod({
        namespace: 'other',
        labels: APP,
        spec: { topologySpreadConstraints: [spread()] },
      });
      expect(checkFit(snapshot, foreign, 'a1').fits).toBe(true);
      expect(ask({ topologySpreadConstraints: [spread(), spread({ topologyKey: 'rack' })] })).toBe(
        false,
      );
      expect(ask({ topologySpreadConstraints: [spread({ topologyKey: HOSTNAME })] })).toBe(false);
      expect(
        ask({ topologySpreadConstraints: [spread({ labelSelector: select({ app: 'y' }) })] }),
      ).toBe(true);
    });
  });
});

function inZones(...values: string[]): NonNullable<PodSpecSource['affinity']> {
  return {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: ZONE, operator: 'In', values }] }],
      },
    },
  };
}
