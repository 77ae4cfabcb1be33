// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { fits, Snapshot, withNodes, withoutNodes, withoutPod, withPod } from './index.ts';
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

describe('what-ifs', () => {
  test('change only what is built on them', () => {
    const before = aCluster(two);
    const after = withPod(before, app('1'), 'a');
    expect(fits(after, app('2'), 'a').fits).toBe(false);
    expect(fits(before, app('2'), 'a').fits).toBe(true);
    expect(fits(after, app('2'), 'b').fits).toBe(true);
  });

  test('may be asked in any order, siblings and grandchildren', () => {
    const root = aCluster(two);
    const left = withPod(root, app('1'), 'a');
    const right = withPod(root, app('1'), 'b');
    const deep = withPod(withPod(left, app('2'), 'b'), app('3'), 'b');
    const answers = (): readonly boolean[] =>
      [root, left, right, deep].map((one) => fits(one, app('9'), 'b').fits);
    expect(answers()).toEqual([true, true, false, false]);
    expect([right, deep, root, left].map((one) => fits(one, app('9'), 'a').fits)).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(answers()).toEqual([true, true, false, false]);
  });

  test('a pod can be taken away again', () => {
    const placed = withPod(aCluster(two), app('1'), 'a');
    const gone = withoutPod(placed, app('1'), 'a');
    expect(fits(gone, app('2'), 'a').fits).toBe(true);
    expect(withoutPod(placed, app('other'), 'a').podsOn('a')).toHaveLength(1);
    const foreign = { ...app('1'), namespace: 'other' };
    expect(withoutPod(placed, foreign, 'a').podsOn('a')).toHaveLength(1);
    expect(gone.podsOn('a')).toEqual([]);
    expect(placed.podsOn('a').map(({ name, nodeName }) => [name, nodeName])).toEqual([['1', 'a']]);
  });

  test('nodes come and go with everything on them', () => {
    const root = withPod(aCluster(two), app('1'), 'a');
    expect(fits(root, app('2'), 'a').fits).toBe(false);
    const alone = withoutNodes(root, ['b']);
    expect(alone.nodes.map(({ name }) => name)).toEqual(['a']);
    // With zone b gone zone a is compared with itself only.
    expect(fits(alone, app('2'), 'a').fits).toBe(true);
    const empty = withoutNodes(root, ['a', 'b']);
    expect(empty.nodes).toEqual([]);
    const more = withNodes(empty, [aNode({ name: 'c', zone: 'c' })]);
    expect(fits(more, app('2'), 'c').fits).toBe(true);
    expect(root.nodes.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(fits(root, app('2'), 'a').fits).toBe(false);
    expect(root.podsOn('a')).toHaveLength(1);
    expect(empty.podsOn('a')).toEqual([]);
  });

  test('pods go with their node, also in the eyes of others', () => {
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
    expect(fits(root, near, '2').fits).toBe(true);
    const without = withoutNodes(root, ['1']);
    expect(fits(without, near, '2').fits).toBe(false);
    expect(fits(root, near, '2').fits).toBe(true);
    const back = withNodes(without, [aNode({ name: '1', zone: 'a' })]);
    expect(fits(back, near, '2').fits).toBe(false);
    expect(fits(back, aPod({ cpu: '4' }), '1').fits).toBe(true);
    expect(fits(root, aPod({ cpu: '4' }), '1').fits).toBe(false);
  });

  test('a question asked in one is answered in another', () => {
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
    expect(fits(placed, other, 'a').fits).toBe(false);
    expect(fits(root, other, 'a').fits).toBe(true);
    expect(fits(placed, apart, 'a').fits).toBe(false);
    expect(fits(placed, apart, 'b').fits).toBe(true);
    const moved = withPod(withoutPod(placed, apart, 'a'), apart, 'b');
    expect(fits(moved, other, 'a').fits).toBe(true);
    expect(fits(moved, other, 'b').fits).toBe(false);
    expect(fits(placed, other, 'a').fits).toBe(false);
  });

  test('pods of a kind that nobody had seen when the question was first asked', () => {
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
    expect(fits(root, app('1'), 'a').fits).toBe(true);
    expect(fits(root, wanting({ app: 'x' }), 'a').fits).toBe(false);
    const strange = aPod({ name: 'strange', labels: { app: 'z' } });
    const other = withPod(root, strange, 'a');
    expect(fits(other, app('1'), 'a').fits).toBe(true);
    expect(fits(other, wanting({ app: 'x' }), 'a').fits).toBe(false);
    const newer = aPod({ name: 'newer', labels: { app: 'x', version: '2' } });
    const after = withPod(root, newer, 'a');
    expect(fits(after, app('1'), 'a').fits).toBe(false);
    expect(fits(after, wanting({ app: 'x' }), 'a').fits).toBe(true);
    expect(fits(after, wanting({ app: 'x' }), 'b').fits).toBe(false);
    const going = withPod(
      root,
      { ...newer, labels: { app: 'x', v: '3' }, isTerminating: true },
      'a',
    );
    expect(fits(going, app('1'), 'a').fits).toBe(true);
    expect(fits(going, wanting({ app: 'x' }), 'a').fits).toBe(true);
  });

  test('a node that is not there is a mistake of the caller', () => {
    expect(() => withPod(aCluster(), aPod(), 'ghost')).toThrow("no node 'ghost'");
    expect(() => withoutNodes(aCluster(), ['ghost'])).toThrow("no node 'ghost'");
  });

  test('a failed edit leaves nothing behind', () => {
    const snapshot = aCluster(two);
    expect(() => withoutNodes(snapshot, ['a', 'ghost'])).toThrow();
    expect(snapshot.nodes.map(({ name }) => name)).toEqual(['a', 'b']);
  });
});

describe('storage in what-ifs', () => {
  const pod = (name: string, claim: string): ReturnType<typeof aPod> =>
    aPod({ name, spec: using(claim) });

  test('a volume that a pod would get is not free any more', () => {
    const before = aCluster({
      storageClasses: [aClass('local')],
      persistentVolumes: [aVolume('pv')],
      persistentVolumeClaims: [aClaim('c'), aClaim('d')],
    });
    const after = withPod(before, pod('p', 'c'), 'node-1');
    expect(fits(after, pod('q', 'd'), 'node-1')).toEqual({
      fits: false,
      reasons: [{ filter: 'VolumeBinding', problem: 'no-volume', claim: 'default/d' }],
    });
    expect(fits(after, pod('r', 'c'), 'node-1').fits).toBe(true);
    expect(fits(before, pod('q', 'd'), 'node-1').fits).toBe(true);
    expect(fits(withoutPod(after, pod('p', 'c'), 'node-1'), pod('q', 'd'), 'node-1').fits).toBe(
      true,
    );
  });

  test('a claim that is provisioned for a node ties later pods to it', () => {
    const before = aCluster({
      nodes: [{ name: 'a' }, { name: 'b' }],
      storageClasses: [aClass('local', { provisioner: 'csi' })],
      persistentVolumeClaims: [aClaim('c')],
    });
    const after = withPod(before, pod('p', 'c'), 'a');
    expect(fits(after, pod('q', 'c'), 'a').fits).toBe(true);
    expect(fits(after, pod('q', 'c'), 'b')).toMatchObject({
      reasons: [{ problem: 'other-node-selected' }],
    });
    expect(fits(before, pod('q', 'c'), 'b').fits).toBe(true);
  });

  test('a claim for one pod is free again when its pod is gone', () => {
    const before = aCluster({
      persistentVolumes: [aVolume('pv')],
      persistentVolumeClaims: [boundClaim('c', 'pv', { accessModes: ['ReadWriteOncePod'] })],
    });
    const taken = withPod(before, pod('p', 'c'), 'node-1');
    expect(fits(taken, pod('q', 'c'), 'node-1')).toMatchObject({
      reasons: [{ problem: 'claim-in-use' }],
    });
    const free = withoutPod(taken, pod('p', 'c'), 'node-1');
    expect(fits(free, pod('q', 'c'), 'node-1').fits).toBe(true);
    expect(fits(before, pod('q', 'c'), 'node-1').fits).toBe(true);
  });

  test('a pod is placed even where its claims have no answer', () => {
    const placed = withPod(aCluster(), pod('p', 'gone'), 'node-1');
    expect(placed.podsOn('node-1')).toHaveLength(1);
  });
});

describe('Snapshot.of', () => {
  test('needs nothing but nodes', () => {
    const snapshot = Snapshot.of({ nodes: [aNode()] });
    expect(snapshot.nodes).toEqual([aNode()]);
    expect(snapshot.daemonSets).toEqual([]);
    expect(snapshot.podsOn('ghost')).toEqual([]);
    expect(fits(snapshot, aPod({ cpu: '1' }), 'node-1').fits).toBe(true);
  });
});
