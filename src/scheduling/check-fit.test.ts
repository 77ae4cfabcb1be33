// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { checkFit, rejectsEverywhere } from './index.ts';
import { aCluster, aPod } from './testing/builders.ts';

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
