// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { canEmpty, type Emptying } from './index.ts';
import { aCluster, HOSTNAME, type PodWish, select } from './testing/builders.ts';

const NODES = [{ name: 'a' }, { name: 'b' }, { name: 'c', allocatable: { cpu: '1' } }];

function emptying(
  pods: readonly PodWish[],
  names: readonly string[] = ['a'],
  options = {},
): Emptying {
  return canEmpty(aCluster({ nodes: NODES, pods }), names, options);
}

function moves(result: Emptying): readonly (readonly string[])[] {
  return result.moves.map(({ pod, from, to }) => [pod.name, from, to]);
}

describe('canEmpty', () => {
  test('an empty node is empty', () => {
    expect(emptying([])).toEqual({ isPossible: true, moves: [] });
  });

  test('finds a place for every pod, the tightest that will do', () => {
    const result = emptying([
      { name: '1', on: 'a', cpu: '1' },
      { name: '2', on: 'a', cpu: '2' },
    ]);
    expect(result.isPossible).toBe(true);
    expect(moves(result)).toEqual([
      ['2', 'a', 'b'],
      ['1', 'a', 'c'],
    ]);
  });

  test('names the pod that has none, and why, node by node', () => {
    const result = emptying([
      { name: 'large', on: 'a', cpu: '3' },
      { name: 'small', on: 'a', cpu: '1' },
      { name: 'there', on: 'b', cpu: '2' },
    ]);
    expect(result.isPossible).toBe(false);
    expect(moves(result)).toEqual([['small', 'a', 'c']]);
    expect(!result.isPossible && result.stuck).toMatchObject([
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

  test('pods that belong to the node or are going need no place', () => {
    const result = emptying([
      { name: 'daemon', on: 'a', cpu: '4', controller: 'DaemonSet' },
      { name: 'going', on: 'a', cpu: '4', terminating: true },
    ]);
    expect(result).toEqual({ isPossible: true, moves: [] });
    const replica = emptying([{ on: 'a', cpu: '4', controller: 'ReplicaSet' }]);
    expect(moves(replica)).toEqual([['pod', 'a', 'b']]);
  });

  test('expendable pods may be lost', () => {
    const pods = [
      { on: 'a', cpu: '4', priority: -20 },
      { name: 'full', on: 'b', cpu: '4' },
    ];
    expect(emptying(pods).isPossible).toBe(false);
    expect(emptying(pods, ['a'], { expendableBelow: -10 }).isPossible).toBe(true);
    expect(emptying(pods, ['a'], { expendableBelow: -20 }).isPossible).toBe(false);
  });

  test('several nodes at once: none of them takes in the others', () => {
    const pods = [
      { name: '1', on: 'a', cpu: '1' },
      { name: '2', on: 'b', cpu: '1' },
    ];
    const result = emptying(pods, ['a', 'b']);
    expect(result.isPossible).toBe(false);
    expect(moves(result)).toEqual([['1', 'a', 'c']]);
    expect(
      !result.isPossible && result.stuck.map(({ nodes }) => nodes.map(({ node }) => node)),
    ).toEqual([['c']]);
  });

  test('nodes to be avoided are not asked', () => {
    const avoid = new Set(['b']);
    const result = emptying([{ on: 'a', cpu: '2' }], ['a'], { avoid });
    expect(!result.isPossible && result.stuck[0]?.nodes.map(({ node }) => node)).toEqual(['c']);
  });

  test('what the pods mean to each other holds at the new place', () => {
    const apart = {
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: HOSTNAME, labelSelector: select({ app: 'x' }) },
          ],
        },
      },
    };
    const pod = (name: string, on: string): PodWish => ({
      name,
      labels: { app: 'x' },
      spec: { nodeName: on, ...apart },
    });
    expect(emptying([pod('1', 'a'), pod('2', 'b')]).isPossible).toBe(true);
    expect(emptying([pod('1', 'a'), pod('2', 'b'), pod('3', 'c')]).isPossible).toBe(false);
  });

  test('leaves the snapshot as it was', () => {
    const snapshot = aCluster({ nodes: NODES, pods: [{ on: 'a', cpu: '1' }] });
    const first = canEmpty(snapshot, ['a']);
    expect(canEmpty(snapshot, ['a'])).toEqual(first);
    expect(snapshot.podsOn('a')).toHaveLength(1);
    expect(snapshot.nodes).toHaveLength(3);
  });

  test('a node that is not there is a mistake of the caller', () => {
    expect(() => canEmpty(aCluster(), ['ghost'])).toThrow("no node 'ghost'");
  });
});
