// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { fits, rejectsEverywhere } from './index.ts';
import { aCluster, aPod } from './testing/builders.ts';

describe('fits', () => {
  test('says yes without reasons', () => {
    expect(fits(aCluster(), aPod(), 'node-1')).toEqual({ fits: true });
  });

  test('names every filter that stands in the way, not only the first', () => {
    const snapshot = aCluster({
      nodes: [{ unschedulable: true, taints: [{ key: 'k', effect: 'NoSchedule' }] }],
    });
    const pod = aPod({ cpu: '8', spec: { nodeSelector: { disk: 'ssd' }, containers: [] } });
    const verdict = fits(snapshot, pod, 'node-1');
    expect(!verdict.fits && verdict.reasons.map(({ filter }) => filter)).toEqual([
      'NodeUnschedulable',
      'TaintToleration',
      'NodeAffinity',
    ]);
  });

  test('a node that is not there is a mistake of the caller', () => {
    expect(() => fits(aCluster(), aPod(), 'ghost')).toThrow("no node 'ghost'");
  });

  test('pods that have finished hold nothing', () => {
    const full = { on: 'node-1', cpu: '4' };
    for (const phase of ['Succeeded', 'Failed']) {
      const snapshot = aCluster({ pods: [{ ...full, status: { phase } }] });
      expect(fits(snapshot, aPod({ cpu: '4' }), 'node-1')).toEqual({ fits: true });
    }
    const running = aCluster({ pods: [{ ...full, status: { phase: 'Running' } }] });
    expect(fits(running, aPod({ cpu: '4' }), 'node-1').fits).toBe(false);
  });

  test('pods on nodes that are not there are ignored', () => {
    const snapshot = aCluster({ pods: [{ on: 'ghost', cpu: '4' }] });
    expect(fits(snapshot, aPod({ cpu: '4' }), 'node-1')).toEqual({ fits: true });
  });
});

describe('nodes kept free for others', () => {
  const nominated = (priority: number): Parameters<typeof aCluster>[0] => ({
    pods: [{ name: 'vip', cpu: '3', priority, status: { nominatedNodeName: 'node-1' } }],
  });

  test('count for pods that are not more important', () => {
    const snapshot = aCluster(nominated(10));
    const verdict = fits(snapshot, aPod({ cpu: '2', priority: 10 }), 'node-1');
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

  test('do not count for pods that are more important', () => {
    expect(fits(aCluster(nominated(10)), aPod({ cpu: '2', priority: 11 }), 'node-1').fits).toBe(
      true,
    );
  });

  test('do not count for the pod itself, nor on other nodes', () => {
    const snapshot = aCluster({ ...nominated(10), nodes: [{}, { name: 'node-2' }] });
    expect(fits(snapshot, aPod({ name: 'vip', cpu: '3', priority: 10 }), 'node-1').fits).toBe(true);
    expect(fits(snapshot, aPod({ cpu: '2' }), 'node-2').fits).toBe(true);
  });

  test('leave no trace after they were asked about', () => {
    const snapshot = aCluster(nominated(10));
    expect(fits(snapshot, aPod({ cpu: '2' }), 'node-1').fits).toBe(false);
    expect(fits(snapshot, aPod({ cpu: '2', priority: 11 }), 'node-1').fits).toBe(true);
  });
});

describe('reasons that lie in the pod', () => {
  test('hold for every node', () => {
    const claim = { filter: 'VolumeBinding', problem: 'claim-lost', claim: 'default/c' } as const;
    expect(rejectsEverywhere(claim)).toBe(true);
    expect(rejectsEverywhere({ ...claim, problem: 'no-space' })).toBe(false);
    expect(rejectsEverywhere({ filter: 'NodeUnschedulable' })).toBe(false);
    expect(
      rejectsEverywhere({ filter: 'VolumeRestrictions', problem: 'claim-in-use', claim: 'c' }),
    ).toBe(true);
  });
});
