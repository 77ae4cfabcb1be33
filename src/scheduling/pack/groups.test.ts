// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Pod } from '../../model/pod.ts';
import { Snapshot } from '../index.ts';
import { aPod, HOSTNAME, type PodOptions, select } from '../testing/builders.ts';
import { using } from '../testing/storage.ts';
import { groupPods } from './groups.ts';

const WEIGHTS = { cpu: 1, memory: 1e-6, isPriced: false };

function order(...pods: Pod[]): readonly string[] {
  const world = Snapshot.of({ nodes: [] }).activate();
  return groupPods(pods, world, WEIGHTS).map((group) => group.pods.map(({ name }) => name).join());
}

const term = { topologyKey: HOSTNAME, labelSelector: select({ app: 'x' }) };
const required = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
const KINDS: readonly PodOptions[] = [
  { name: 'has-anti-affinity', spec: { affinity: { podAntiAffinity: required } } },
  { name: 'ports', spec: { containers: [{ ports: [{ hostPort: 1 }] }] } },
  { name: 'has-affinity', spec: { affinity: { podAffinity: required } } },
  {
    name: 'spreads',
    spec: {
      topologySpreadConstraints: [
        {
          topologyKey: HOSTNAME,
          maxSkew: 1,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: {},
        },
      ],
    },
  },
  { name: 'free', cpu: '1' },
];

describe('groupPods', () => {
  test('sorts pods that are hard to place first', () => {
    const names = KINDS.map(({ name }) => name);
    const pods = KINDS.map(aPod);
    expect(order(...pods)).toEqual(names);
    expect(order(...pods.toReversed())).toEqual(names);
    const volumes = aPod({ name: 'volumes', spec: using('c') });
    expect(order(...pods.toReversed(), volumes).indexOf('volumes')).toBeLessThan(3);
    expect(order(...pods.toReversed(), volumes).indexOf('volumes')).toBeGreaterThan(0);
  });

  test('sorts by priority before difficulty', () => {
    const vip = aPod({ name: 'vip', priority: 1 });
    expect(order(...KINDS.map(aPod), vip)[0]).toBe('vip');
  });

  test('sorts large pods before small ones', () => {
    const sizes = ['100m', '2', '500m'].map((cpu) => aPod({ name: cpu, cpu }));
    expect(order(...sizes)).toEqual(['2', '500m', '100m']);
    const memory = ['1Mi', '9Mi'].map((text) => aPod({ name: text, memory: text }));
    expect(order(...memory)).toEqual(['9Mi', '1Mi']);
  });

  test('puts equal pods into one group, sorted by name, then by uid', () => {
    const named = (name: string, uid: string): Pod => ({ ...aPod({ cpu: '1' }), name, uid });
    const pods = [named('b', '1'), named('a', '2'), named('a', '1'), named('c', '0')];
    const world = Snapshot.of({ nodes: [] }).activate();
    for (const all of [pods, pods.toReversed()]) {
      const groups = groupPods(all, world, WEIGHTS);
      expect(groups).toHaveLength(1);
      expect(groups[0]?.pods.map(({ name, uid }) => name + uid)).toEqual(['a1', 'a2', 'b1', 'c0']);
      expect(groups[0]).toMatchObject({ rules: 0, priority: 0, cpuMilli: 1000, memoryBytes: 0 });
    }
  });

  test.each<[string, PodOptions]>([
    ['labels', { labels: { a: 'b' } }],
    ['namespace', { namespace: 'other' }],
    ['priority', { priority: 3 }],
    ['requests', { cpu: '2' }],
    ['memory', { cpu: '1', memory: '1Mi' }],
    [
      'tolerations',
      {
        cpu: '1',
        spec: {
          tolerations: [{ operator: 'Exists' }],
          containers: [{ resources: { requests: { cpu: '1' } } }],
        },
      },
    ],
    [
      'node selector',
      {
        spec: { nodeSelector: { a: 'b' }, containers: [{ resources: { requests: { cpu: '1' } } }] },
      },
    ],
    [
      'extended resources',
      { spec: { containers: [{ resources: { requests: { cpu: '1', 'a.b/c': '1' } } }] } },
    ],
    [
      'ephemeral storage',
      {
        spec: { containers: [{ resources: { requests: { cpu: '1', 'ephemeral-storage': '1' } } }] },
      },
    ],
  ])('puts pods that differ in %s into different groups', (_, options) => {
    expect(order(aPod({ name: 'a', cpu: '1' }), aPod({ name: 'b', ...options }))).toHaveLength(2);
  });

  test('puts pods with the same claim into different groups, since a claim may belong to one of them', () => {
    const pods = ['a', 'b'].map((name) => aPod({ name, spec: using('c') }));
    expect(order(...pods)).toHaveLength(2);
  });

  test('numbers rules independently of requests', () => {
    const world = Snapshot.of({ nodes: [] }).activate();
    const pods = [
      aPod({ name: 'a', cpu: '1' }),
      aPod({ name: 'b', cpu: '2' }),
      aPod({ name: 'c', cpu: '3', labels: { a: 'b' } }),
    ];
    const rules = groupPods(pods, world, WEIGHTS).map((group) => [
      group.pods[0]?.name,
      group.rules,
    ]);
    expect(Object.fromEntries(rules)).toEqual({ a: 0, b: 0, c: 1 });
  });
});
