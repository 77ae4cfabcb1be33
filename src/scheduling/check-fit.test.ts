// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { PodSpecSource } from '../model/pod-source.ts';
import { checkFit, rejectsEverywhere } from './index.ts';
import { aCluster, aPod, HOSTNAME, type PodOptions, select } from './testing/builders.ts';
import { aClaim, using } from './testing/storage.ts';

type Volume = NonNullable<NonNullable<PodSpecSource['volumes']>[number]>;

describe('checkFit', () => {
  test('returns no reasons if the pod fits', () => {
    expect(checkFit(aCluster(), aPod(), 'node-1')).toEqual({ fits: true });
  });

  test('returns the reasons of every filter, not only of the first', () => {
    const snapshot = aCluster({
      nodes: [{ unschedulable: true, taints: [{ key: 'k', effect: 'NoSchedule' }] }],
    });
    const pod = aPod({ cpu: '8', spec: { nodeSelector: { disk: 'ssd' }, containers: [] } });
    const verdict = checkFit(snapshot, pod, 'node-1');
    expect(!verdict.fits && verdict.reasons.map(({ filter }) => filter)).toEqual([
      'NodeUnschedulable',
      'TaintToleration',
      'NodeAffinity',
    ]);
  });

  test('throws for a node that is not in the snapshot', () => {
    expect(() => checkFit(aCluster(), aPod(), 'unknown')).toThrow(
      "node 'unknown' is not in this snapshot",
    );
  });

  test('ignores finished pods', () => {
    const full = { on: 'node-1', cpu: '4' };
    for (const phase of ['Succeeded', 'Failed']) {
      const snapshot = aCluster({ pods: [{ ...full, status: { phase } }] });
      expect(checkFit(snapshot, aPod({ cpu: '4' }), 'node-1')).toEqual({ fits: true });
    }
    const running = aCluster({ pods: [{ ...full, status: { phase: 'Running' } }] });
    expect(checkFit(running, aPod({ cpu: '4' }), 'node-1').fits).toBe(false);
  });

  test('ignores pods on unknown nodes', () => {
    const snapshot = aCluster({ pods: [{ on: 'unknown', cpu: '4' }] });
    expect(checkFit(snapshot, aPod({ cpu: '4' }), 'node-1')).toEqual({ fits: true });
  });
});

describe('nominated pods', () => {
  const nominated = (priority: number): Parameters<typeof aCluster>[0] => ({
    pods: [{ name: 'vip', cpu: '3', priority, status: { nominatedNodeName: 'node-1' } }],
  });

  test('count against pods of equal or lower priority', () => {
    const snapshot = aCluster(nominated(10));
    const verdict = checkFit(snapshot, aPod({ cpu: '2', priority: 10 }), 'node-1');
    expect(verdict).toEqual({
      fits: false,
      reasons: [
        {
          filter: 'NodeResourcesFit',
          shortfalls: [{ resource: 'cpu', requested: 2000, used: 3000, allocatable: 4000 }],
        },
      ],
    });
  });

  test('do not count against pods of higher priority', () => {
    expect(checkFit(aCluster(nominated(10)), aPod({ cpu: '2', priority: 11 }), 'node-1').fits).toBe(
      true,
    );
  });

  test('do not count against the pod itself or on other nodes', () => {
    const snapshot = aCluster({ ...nominated(10), nodes: [{}, { name: 'node-2' }] });
    expect(checkFit(snapshot, aPod({ name: 'vip', cpu: '3', priority: 10 }), 'node-1').fits).toBe(
      true,
    );
    expect(checkFit(snapshot, aPod({ cpu: '2' }), 'node-2').fits).toBe(true);
  });

  test('are removed again after the check', () => {
    const snapshot = aCluster(nominated(10));
    expect(checkFit(snapshot, aPod({ cpu: '2' }), 'node-1').fits).toBe(false);
    expect(checkFit(snapshot, aPod({ cpu: '2', priority: 11 }), 'node-1').fits).toBe(true);
  });
});

describe('nominated pods, where the scheduler treats them differently from placed pods', () => {
  const antiAffinity = (app: string): NonNullable<PodOptions['spec']> => ({
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: HOSTNAME, labelSelector: select({ app }) },
        ],
      },
    },
  });
  const spread = (labelSelector: object): NonNullable<PodOptions['spec']> => ({
    topologySpreadConstraints: [
      { topologyKey: HOSTNAME, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector },
    ],
  });
  const nodes = [{ name: 'node-1' }, { name: 'node-2' }];
  const rival = (options: PodOptions): PodOptions => ({
    name: 'rival',
    status: { nominatedNodeName: 'node-1' },
    ...options,
  });
  const fits = (pods: readonly PodOptions[], pod: PodOptions, node = 'node-1'): boolean =>
    checkFit(aCluster({ nodes, pods }), aPod(pod), node).fits;

  test('ignores their anti-affinity while no placed pod has anti-affinity against the pod', () => {
    const web = { labels: { app: 'web' } };
    const against = rival({ spec: antiAffinity('web') });
    expect(fits([against], web)).toBe(true);
    const placed = { name: 'placed', spec: { nodeName: 'node-2', ...antiAffinity('web') } };
    expect(fits([against, placed], web)).toBe(false);
    // With affinity of its own the pod's filter is prepared.
    expect(fits([against], { ...web, spec: antiAffinity('other') })).toBe(false);
  });

  test('counts terminating ones for topology spread', () => {
    const web = { labels: { app: 'web' } };
    const pod = { ...web, spec: spread(select({ app: 'web' })) };
    expect(fits([rival({ ...web, terminating: true })], pod)).toBe(false);
    expect(fits([{ name: 'placed', on: 'node-1', terminating: true, ...web }], pod)).toBe(true);
  });

  test('counts them for a topology spread with an empty selector', () => {
    const pod = { spec: spread({}) };
    expect(fits([rival({})], pod)).toBe(false);
    expect(fits([rival({ namespace: 'other' })], pod)).toBe(true);
    expect(fits([rival({})], pod, 'node-2')).toBe(true);
    expect(fits([{ name: 'placed', on: 'node-1' }], pod)).toBe(true);
  });

  test('compares their claims by name, and only if the pod also uses a disk', () => {
    const claim = aClaim('c', { accessModes: ['ReadWriteOncePod'] });
    const disk = (pdName: string): Volume => ({ name: 'd', gcePersistentDisk: { pdName } });
    const check = (volumes: readonly Volume[], pod: PodOptions): unknown => {
      const snapshot = aCluster({
        nodes,
        pods: [rival(pod)],
        persistentVolumeClaims: [claim],
      });
      const spec = { volumes: [...volumes, ...(using('c').volumes ?? [])] };
      const verdict = checkFit(snapshot, aPod({ spec }), 'node-1');
      return !verdict.fits && verdict.reasons.find((one) => one.filter === 'VolumeRestrictions');
    };
    const inUse = { filter: 'VolumeRestrictions', problem: 'claim-in-use', claim: 'c' };
    expect(check([], { spec: using('c') })).toBeUndefined();
    expect(check([disk('mine')], { spec: using('c') })).toEqual(inUse);
    expect(check([disk('mine')], { namespace: 'other', spec: using('c') })).toEqual(inUse);
    expect(check([disk('mine')], { spec: using('other') })).toBeUndefined();
    expect(check([disk('mine')], { spec: { volumes: [disk('mine')] } })).toMatchObject({
      problem: 'disk-in-use',
      disk: { id: 'mine' },
    });
  });

  test('requires a pod to fit without them too', () => {
    const near = {
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: HOSTNAME, labelSelector: select({ app: 'web' }) },
          ],
        },
      },
    };
    expect(fits([rival({ labels: { app: 'web' } })], { spec: near })).toBe(false);
  });
});

describe('reasons that are in the pod itself', () => {
  test('reject every node', () => {
    const claim = { filter: 'VolumeBinding', problem: 'claim-lost', claim: 'default/c' } as const;
    expect(rejectsEverywhere(claim)).toBe(true);
    expect(rejectsEverywhere({ ...claim, problem: 'no-space' })).toBe(false);
    expect(rejectsEverywhere({ filter: 'NodeUnschedulable' })).toBe(false);
    expect(
      rejectsEverywhere({ filter: 'VolumeRestrictions', problem: 'claim-in-use', claim: 'c' }),
    ).toBe(true);
  });
});
