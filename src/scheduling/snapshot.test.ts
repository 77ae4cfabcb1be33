// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { checkFit, Snapshot, withNodes, withoutNodes, withoutPod, withPod } from './index.ts';
import { aCluster, aNode, aPod, HOSTNAME, select, ZONE } from './testing/builders.ts';
import { aClaim, aClass, aVolume, boundClaim, using } from './testing/storage.ts';

const spread = {
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: ZONE,
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: select({ app: 'x' }),
    },
  ],
};
const app = (name: string): ReturnType<typeof aPod> =>
  aPod({ name, labels: { app: 'x' }, cpu: '1', spec: { containers: [], ...spread } });
const two = {
  nodes: [
    { name: 'a', zone: 'a' },
    { name: 'b', zone: 'b' },
  ],
};

describe('a derived snapshot', () => {
  test('does not change the snapshot it is derived from', () => {
    const before = aCluster(two);
    const after = withPod(before, app('1'), 'a');
    expect(checkFit(after, app('2'), 'a').fits).toBe(false);
    expect(checkFit(before, app('2'), 'a').fits).toBe(true);
    expect(checkFit(after, app('2'), 'b').fits).toBe(true);
  });

  test('can be used in any order with its siblings and descendants', () => {
    const root = aCluster(two);
    const left = withPod(root, app('1'), 'a');
    const right = withPod(root, app('1'), 'b');
    const deep = withPod(withPod(left, app('2'), 'b'), app('3'), 'b');
    const answers = (): readonly boolean[] =>
      [root, left, right, deep].map((one) => checkFit(one, app('9'), 'b').fits);
    expect(answers()).toEqual([true, true, false, false]);
    expect([right, deep, root, left].map((one) => checkFit(one, app('9'), 'a').fits)).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(answers()).toEqual([true, true, false, false]);
  });

  test('can remove a pod that was added', () => {
    const placed = withPod(aCluster(two), app('1'), 'a');
    const gone = withoutPod(placed, app('1'), 'a');
    expect(checkFit(gone, app('2'), 'a').fits).toBe(true);
    expect(withoutPod(placed, app('other'), 'a').podsOn('a')).toHaveLength(1);
    const foreign = { ...app('1'), namespace: 'other' };
    expect(withoutPod(placed, foreign, 'a').podsOn('a')).toHaveLength(1);
    expect(gone.podsOn('a')).toEqual([]);
    expect(placed.podsOn('a').map(({ name, nodeName }) => [name, nodeName])).toEqual([['1', 'a']]);
  });

  test('can add and remove nodes with their pods', () => {
    const root = withPod(aCluster(two), app('1'), 'a');
    expect(checkFit(root, app('2'), 'a').fits).toBe(false);
    const alone = withoutNodes(root, ['b']);
    expect(alone.nodes.map(({ name }) => name)).toEqual(['a']);
    // Without zone b, zone a is compared with itself only.
    expect(checkFit(alone, app('2'), 'a').fits).toBe(true);
    const empty = withoutNodes(root, ['a', 'b']);
    expect(empty.nodes).toEqual([]);
    const more = withNodes(empty, [aNode({ name: 'c', zone: 'c' })]);
    expect(checkFit(more, app('2'), 'c').fits).toBe(true);
    expect(root.nodes.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(checkFit(root, app('2'), 'a').fits).toBe(false);
    expect(root.podsOn('a')).toHaveLength(1);
    expect(empty.podsOn('a')).toEqual([]);
  });

  test('removes the pods of a removed node from all counters', () => {
    const nodes = ['1', '2'].map((name) => ({ name, zone: 'a' }));
    const root = aCluster({
      nodes,
      pods: [{ name: 'p', labels: { app: 'x' }, on: '1', cpu: '1' }],
    });
    const near = aPod({
      name: 'near',
      spec: {
        affinity: {
          podAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              { topologyKey: ZONE, labelSelector: select({ app: 'x' }) },
            ],
          },
        },
      },
    });
    expect(checkFit(root, near, '2').fits).toBe(true);
    const without = withoutNodes(root, ['1']);
    expect(checkFit(without, near, '2').fits).toBe(false);
    expect(checkFit(root, near, '2').fits).toBe(true);
    const back = withNodes(without, [aNode({ name: '1', zone: 'a' })]);
    expect(checkFit(back, near, '2').fits).toBe(false);
    expect(checkFit(back, aPod({ cpu: '4' }), '1').fits).toBe(true);
    expect(checkFit(root, aPod({ cpu: '4' }), '1').fits).toBe(false);
  });

  test('reuses counters created in another snapshot', () => {
    const root = aCluster(two);
    const apart = aPod({
      name: 'apart',
      labels: { role: 'x' },
      spec: {
        affinity: {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              { topologyKey: HOSTNAME, labelSelector: select({ role: 'x' }) },
            ],
          },
        },
      },
    });
    const placed = withPod(root, apart, 'a');
    const other = aPod({ name: 'other', labels: { role: 'x' } });
    expect(checkFit(placed, other, 'a').fits).toBe(false);
    expect(checkFit(root, other, 'a').fits).toBe(true);
    expect(checkFit(placed, apart, 'a').fits).toBe(false);
    expect(checkFit(placed, apart, 'b').fits).toBe(true);
    const moved = withPod(withoutPod(placed, apart, 'a'), apart, 'b');
    expect(checkFit(moved, other, 'a').fits).toBe(true);
    expect(checkFit(moved, other, 'b').fits).toBe(false);
    expect(checkFit(placed, other, 'a').fits).toBe(false);
  });

  test('counts pods with labels that were unknown when the counter was created', () => {
    const root = aCluster(two);
    const wanting = (labels: Record<string, string>): ReturnType<typeof aPod> =>
      aPod({
        name: 'wanting',
        spec: {
          affinity: {
            podAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { topologyKey: ZONE, labelSelector: select(labels) },
              ],
            },
          },
        },
      });
    expect(checkFit(root, app('1'), 'a').fits).toBe(true);
    expect(checkFit(root, wanting({ app: 'x' }), 'a').fits).toBe(false);
    const strange = aPod({ name: 'strange', labels: { app: 'z' } });
    const other = withPod(root, strange, 'a');
    expect(checkFit(other, app('1'), 'a').fits).toBe(true);
    expect(checkFit(other, wanting({ app: 'x' }), 'a').fits).toBe(false);
    const newer = aPod({ name: 'newer', labels: { app: 'x', version: '2' } });
    const after = withPod(root, newer, 'a');
    expect(checkFit(after, app('1'), 'a').fits).toBe(false);
    expect(checkFit(after, wanting({ app: 'x' }), 'a').fits).toBe(true);
    expect(checkFit(after, wanting({ app: 'x' }), 'b').fits).toBe(false);
    const going = withPod(
      root,
      { ...newer, labels: { app: 'x', v: '3' }, isTerminating: true },
      'a',
    );
    expect(checkFit(going, app('1'), 'a').fits).toBe(true);
    expect(checkFit(going, wanting({ app: 'x' }), 'a').fits).toBe(true);
  });

  test('throws for a node that is not in the snapshot', () => {
    expect(() => withPod(aCluster(), aPod(), 'unknown')).toThrow(
      "node 'unknown' is not in this snapshot",
    );
    expect(() => withoutNodes(aCluster(), ['unknown'])).toThrow(
      "node 'unknown' is not in this snapshot",
    );
  });

  test('throws for a node that is already in the snapshot, and keeps it', () => {
    const snapshot = aCluster({ ...two, pods: [{ on: 'a', cpu: '4' }] });
    const a = aNode({ name: 'a', zone: 'a' });
    const problem = "node 'a' is already in this snapshot";
    expect(() => withNodes(snapshot, [a])).toThrow(problem);
    expect(() => withNodes(withoutNodes(snapshot, ['a']), [a, a])).toThrow(problem);
    expect(() => Snapshot.of({ nodes: [a, a] })).toThrow(problem);
    expect(checkFit(snapshot, aPod({ cpu: '1' }), 'a').fits).toBe(false);
    expect(snapshot.nodes.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(snapshot.podsOn('a')).toHaveLength(1);
  });

  test('is not affected by an edit that throws', () => {
    const snapshot = aCluster(two);
    expect(() => withoutNodes(snapshot, ['a', 'unknown'])).toThrow();
    expect(snapshot.nodes.map(({ name }) => name)).toEqual(['a', 'b']);
  });
});

describe('storage in derived snapshots', () => {
  const pod = (name: string, claim: string): ReturnType<typeof aPod> =>
    aPod({ name, spec: using(claim) });

  test('reserves the volume that a placed pod gets', () => {
    const before = aCluster({
      storageClasses: [aClass('local')],
      persistentVolumes: [aVolume('pv')],
      persistentVolumeClaims: [aClaim('c'), aClaim('d')],
    });
    const after = withPod(before, pod('p', 'c'), 'node-1');
    expect(checkFit(after, pod('q', 'd'), 'node-1')).toEqual({
      fits: false,
      reasons: [{ filter: 'VolumeBinding', problem: 'no-volume', claim: 'default/d' }],
    });
    expect(checkFit(after, pod('r', 'c'), 'node-1').fits).toBe(true);
    expect(checkFit(before, pod('q', 'd'), 'node-1').fits).toBe(true);
    expect(checkFit(withoutPod(after, pod('p', 'c'), 'node-1'), pod('q', 'd'), 'node-1').fits).toBe(
      true,
    );
  });

  test('ties later pods to the node for which a claim is provisioned', () => {
    const before = aCluster({
      nodes: [{ name: 'a' }, { name: 'b' }],
      storageClasses: [aClass('local', { provisioner: 'csi' })],
      persistentVolumeClaims: [aClaim('c')],
    });
    const after = withPod(before, pod('p', 'c'), 'a');
    expect(checkFit(after, pod('q', 'c'), 'a').fits).toBe(true);
    expect(checkFit(after, pod('q', 'c'), 'b')).toMatchObject({
      reasons: [{ problem: 'other-node-selected' }],
    });
    expect(checkFit(before, pod('q', 'c'), 'b').fits).toBe(true);
  });

  test('releases a ReadWriteOncePod claim when its pod is removed', () => {
    const before = aCluster({
      persistentVolumes: [aVolume('pv')],
      persistentVolumeClaims: [boundClaim('c', 'pv', { accessModes: ['ReadWriteOncePod'] })],
    });
    const taken = withPod(before, pod('p', 'c'), 'node-1');
    expect(checkFit(taken, pod('q', 'c'), 'node-1')).toMatchObject({
      reasons: [{ problem: 'claim-in-use' }],
    });
    const free = withoutPod(taken, pod('p', 'c'), 'node-1');
    expect(checkFit(free, pod('q', 'c'), 'node-1').fits).toBe(true);
    expect(checkFit(before, pod('q', 'c'), 'node-1').fits).toBe(true);
  });

  test('places a pod even if its claims cannot be satisfied', () => {
    const placed = withPod(aCluster(), pod('p', 'gone'), 'node-1');
    expect(placed.podsOn('node-1')).toHaveLength(1);
  });
});

describe('Snapshot.of', () => {
  test('requires nodes only', () => {
    const snapshot = Snapshot.of({ nodes: [aNode()] });
    expect(snapshot.nodes).toEqual([aNode()]);
    expect(snapshot.daemonSets).toEqual([]);
    expect(snapshot.podsOn('unknown')).toEqual([]);
    expect(checkFit(snapshot, aPod({ cpu: '1' }), 'node-1').fits).toBe(true);
  });
});
