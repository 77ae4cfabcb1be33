// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkFit, simulateDrains, withoutPod } from './index.ts';
import {
  aCluster,
  type ClusterOptions,
  HOSTNAME,
  type NodeOptions,
  type PodOptions,
  select,
  ZONE,
} from './testing/builders.ts';
import { findPreferred } from './testing/default-scheduler.ts';

/** Where the pod `moved` goes when its node `from` is drained. */
function choose(pod: PodOptions, { nodes = [], pods = [] }: ClusterOptions): string | undefined {
  const cluster = aCluster({
    nodes: [{ name: 'from' }, ...nodes],
    pods: [{ cpu: '100m', memory: '100Mi', ...pod, name: 'moved', on: 'from' }, ...pods],
  });
  const options = { avoid: new Set<string>(), asScheduled: true };
  return simulateDrains(cluster, options, (tryDrain) => tryDrain('from')).moves[0]?.to;
}

const app = { labels: { app: 'x' }, controller: 'ReplicaSet' };

function preferAny(topologyKey: string, over: object = {}) {
  const labelSelector = select({ app: 'x' });
  const whenUnsatisfiable = 'ScheduleAnyway';
  return {
    topologySpreadConstraints: [
      { topologyKey, labelSelector, whenUnsatisfiable, maxSkew: 1, ...over },
    ],
  };
}

/** More is requested of b than of a, and a has a pod of the same controller. */
const EMPTIER_WITH_SIBLING: ClusterOptions = {
  nodes: [{ name: 'a' }, { name: 'b' }],
  pods: [
    { ...app, name: 'sibling', on: 'a', cpu: '100m', memory: '100Mi' },
    { name: 'other', on: 'b', cpu: '500m', memory: '1Gi' },
  ],
};

const SMALL = { cpu: '2', memory: '2Gi' };
const LARGE = { cpu: '4', memory: '8Gi' };
const X = { labels: { app: 'x' } };
/** That nodes without the label count too decides between n-2 and n-4. */
const WITHOUT_HOST_NAMES = {
  nodes: [
    { zone: 'a', hasHostname: false, size: SMALL },
    { zone: 'a', hasHostname: true, size: SMALL },
    { zone: 'a', hasHostname: false, size: SMALL },
    { zone: 'a', hasHostname: true, size: SMALL },
    { zone: 'b', hasHostname: true, size: LARGE },
  ],
  pods: [
    { ...X, cpu: '50m', memory: '64Mi', on: 0 },
    { ...X, cpu: '50m', memory: '700Mi', on: 0 },
    { ...X, cpu: '500m', memory: '64Mi', on: 2 },
    { ...X, cpu: '50m', memory: '64Mi', on: 4 },
    { ...X, cpu: '50m', memory: '64Mi', on: 4 },
    { ...X, cpu: '50m', memory: '64Mi', on: 0 },
  ],
  moved: { cpu: '1', memory: '700Mi' },
};

describe('the node that kube-scheduler prefers', () => {
  test('is one with a highest score of its default profile, in random clusters', () => {
    const amounts = {
      cpu: fc.constantFrom('50m', '100m', '250m', '500m', '1'),
      memory: fc.constantFrom('64Mi', '256Mi', '700Mi', '2Gi'),
    };
    const nodeOptions = fc.record({
      zone: fc.constantFrom('a', 'b', 'c'),
      hasHostname: fc.constantFrom(true, true, false),
      size: fc.constantFrom(SMALL, LARGE),
    });
    const podOptions = fc.record({
      ...amounts,
      labels: fc.constantFrom({ app: 'x' }, { app: 'y' }),
      on: fc.nat({ max: 5 }),
    });
    const clusters = fc.record({
      nodes: fc.array(nodeOptions, { minLength: 2, maxLength: 6 }),
      pods: fc.array(podOptions, { maxLength: 14 }),
      moved: fc.record(amounts),
    });
    fc.assert(
      fc.property(clusters, ({ nodes, pods, moved }) => {
        const named = nodes.map(
          ({ size, ...node }, index): NodeOptions => ({
            ...node,
            name: `n-${index}`,
            allocatable: size,
          }),
        );
        const cluster = aCluster({
          nodes: [{ name: 'from', zone: 'a' }, ...named],
          pods: [
            { ...app, ...moved, name: 'moved', on: 'from' },
            ...pods.map((pod, index) => ({
              ...pod,
              controller: 'ReplicaSet',
              name: `p-${index}`,
              on: `n-${pod.on % nodes.length}`,
            })),
          ],
        });
        const options = { avoid: new Set<string>(), asScheduled: true };
        const { moves } = simulateDrains(cluster, options, (tryDrain) => tryDrain('from'));
        const [pod] = cluster.podsOn('from');
        if (pod === undefined) throw new Error('there is no pod');
        const waiting = { ...pod, nodeName: '' };
        const left = withoutPod(cluster, pod, 'from');
        const feasible = left.nodes.filter(
          ({ name }) => name !== 'from' && checkFit(left, waiting, name).fits,
        );
        const preferred = findPreferred(waiting, feasible, {
          nodes: left.nodes,
          podsOn: (name) => left.podsOn(name),
        });
        if (feasible.length === 0) expect(moves).toEqual([]);
        else expect(preferred.map(({ name }) => name)).toContain(moves[0]?.to);
      }),
      { numRuns: 300, examples: [[WITHOUT_HOST_NAMES]] },
    );
  });

  test.each([
    ['a pod of a ReplicaSet, spread by default', app, 'b'],
    ['a pod of a StatefulSet, spread by default', { ...app, controller: 'StatefulSet' }, 'b'],
    ['a pod of a Job, not spread', { ...app, controller: 'Job' }, 'a'],
    ['a pod without a controller, not spread', { labels: app.labels }, 'a'],
    ['a pod without labels, not spread', { controller: 'ReplicaSet' }, 'a'],
  ])('for %s', (_, pod, node) => {
    expect(choose(pod, EMPTIER_WITH_SIBLING)).toBe(node);
  });

  test('ignores labels that differ between the pods of a StatefulSet', () => {
    const controller = 'StatefulSet';
    const labelled = (index: number) => ({
      controller,
      labels: {
        app: 'x',
        'apps.kubernetes.io/pod-index': `${index}`,
        'statefulset.kubernetes.io/pod-name': `x-${index}`,
        'controller-revision-hash': `revision-${index}`,
      },
    });
    const [, other] = EMPTIER_WITH_SIBLING.pods ?? [];
    const pods = [
      { ...labelled(1), name: 'sibling', on: 'a', cpu: '100m', memory: '100Mi' },
      ...(other === undefined ? [] : [other]),
    ];
    expect(choose(labelled(0), { ...EMPTIER_WITH_SIBLING, pods })).toBe('b');
  });

  test('depends on the soft constraints of the pod instead of the default ones', () => {
    const spec = preferAny(ZONE);
    // Without zones no node has a score, so that the emptier one is chosen.
    expect(choose({ ...app, spec }, EMPTIER_WITH_SIBLING)).toBe('a');
    const hostname = preferAny(HOSTNAME);
    expect(choose({ ...app, controller: 'Job', spec: hostname }, EMPTIER_WITH_SIBLING)).toBe('b');
  });

  test('depends on no soft constraint when the pod has only hard ones', () => {
    const spec = preferAny(HOSTNAME, { whenUnsatisfiable: 'DoNotSchedule', maxSkew: 5 });
    expect(choose({ ...app, spec }, EMPTIER_WITH_SIBLING)).toBe('a');
  });

  test('has a label that the soft constraint of the pod needs', () => {
    const nodes = [
      { name: 'a', labels: { rack: '1' } },
      { name: 'b' },
      { name: 'c', labels: { rack: '2' } },
    ];
    const pods = [
      { ...app, name: 'sibling', on: 'a', cpu: '100m', memory: '100Mi' },
      { name: 'other', on: 'c', cpu: '500m', memory: '1Gi' },
    ];
    expect(choose({ ...app, spec: preferAny('rack') }, { nodes, pods })).toBe('c');
  });

  test('matches most of the preferred node affinity', () => {
    const prefer = (weight: number, value: string) => ({
      weight,
      preference: { matchExpressions: [{ key: 'disk', operator: 'In', values: [value] }] },
    });
    const nodes = ['a', 'b', 'c'].map((name) => ({ name, labels: { disk: name } }));
    const pods = [{ name: 'other', on: 'c', cpu: '500m', memory: '1Gi' }];
    const preferred = [prefer(1, 'b'), prefer(3, 'c')];
    const spec = {
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } },
    };
    expect(choose({ spec }, { nodes, pods })).toBe('c');
    const unknown = { nodes: nodes.slice(0, 2), pods: [{ ...pods[0], on: 'a' }] };
    expect(choose({ spec }, unknown)).toBe('b');
  });

  test('has few taints PreferNoSchedule that the pod does not tolerate', () => {
    const taint = (key: string) => ({ key, effect: 'PreferNoSchedule' });
    const nodes = [
      { name: 'a', taints: [taint('one'), taint('two')] },
      { name: 'b', taints: [taint('one')] },
    ];
    const pods = [{ name: 'other', on: 'b', cpu: '500m', memory: '1Gi' }];
    expect(choose({}, { nodes, pods })).toBe('b');
    const tolerations = [{ key: 'two', operator: 'Exists' }];
    const tolerant = { containers: [{}], tolerations };
    expect(choose({ spec: tolerant }, { nodes, pods })).toBe('a');
  });

  test('is more balanced with the pod than without it', () => {
    const nodes = [{ name: 'a' }, { name: 'b' }];
    // As much is free of both, but b has more memory left than CPU.
    const pods = [
      { name: 'on-a', on: 'a', cpu: '1', memory: '2Gi' },
      { name: 'on-b', on: 'b', cpu: '2', memory: '1Mi' },
    ];
    expect(choose({ cpu: '10m', memory: '2Gi' }, { nodes, pods })).toBe('b');
  });

  test('has the most free space for a pod that requests nothing', () => {
    const nodes = [{ name: 'a' }, { name: 'b' }];
    const pods = [{ name: 'on-a', on: 'a', cpu: '100m', memory: '100Mi' }];
    expect(choose({ cpu: '0', memory: '0' }, { nodes, pods })).toBe('b');
  });
});
