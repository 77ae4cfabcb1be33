// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { type OpenCluster, onCluster, seenNode } from './cluster-bench.ts';
import { codeOf } from './store-harness.contract.ts';

const STARTUP = { key: 'pvescaler.dev/startup', value: '', effect: 'NoSchedule' } as const;

export function clusterNodesContract(open: OpenCluster): void {
  describe('changing a node', () => {
    it(
      'changes what is named, and nothing else',
      onCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({ name: 'n1', labels: { keep: '1' } });
        await cluster.changeNode(ref, { unschedulable: true });
        const node = await seenNode(cluster, 'n1', ({ unschedulable }) => unschedulable);
        expect(node.labels).toMatchObject({ keep: '1' });
        await cluster.changeNode(ref, { unschedulable: false });
        await seenNode(cluster, 'n1', ({ unschedulable }) => !unschedulable);
      }),
    );

    it(
      "adds and removes taints beside others', and twice is the same as once",
      onCluster(open, async ({ cluster, addNode }) => {
        const other = { key: 'other', value: 'v', effect: 'NoSchedule' } as const;
        const ref = await addNode({ name: 'n1', taints: [other] });
        await cluster.changeNode(ref, { addTaints: [STARTUP] });
        await cluster.changeNode(ref, { addTaints: [{ ...STARTUP, value: 'again' }] });
        const tainted = await seenNode(cluster, 'n1', ({ taints }) =>
          taints.some(({ value }) => value === 'again'),
        );
        expect(tainted.taints.filter(({ key }) => key === STARTUP.key)).toHaveLength(1);
        await cluster.changeNode(ref, { removeTaintKeys: [STARTUP.key] });
        await cluster.changeNode(ref, { removeTaintKeys: [STARTUP.key] });
        const clean = await seenNode(cluster, 'n1', ({ taints }) =>
          taints.every(({ key }) => key !== STARTUP.key),
        );
        expect(clean.taints).toContainEqual(other);
      }),
    );

    it(
      'loses no taint when many change at once',
      onCluster(open, async ({ cluster, peer, addNode, settled }) => {
        const ref = await addNode({ name: 'n1' });
        const other = await peer();
        const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
        const changes = keys.map((key, index) =>
          (index % 2 === 0 ? cluster : other).changeNode(ref, {
            addTaints: [{ key, value: '', effect: 'NoSchedule' }],
          }),
        );
        await settled(Promise.all(changes));
        // The view follows each of them; what was lost would never come.
        await seenNode(cluster, 'n1', ({ taints }) =>
          keys.every((wanted) => taints.some(({ key }) => key === wanted)),
        );
      }),
    );

    it(
      'does not touch another node of the same name',
      onCluster(open, async ({ cluster, addNode, removeNode }) => {
        const old = await addNode({ name: 'n1' });
        await removeNode('n1');
        expect(await codeOf(cluster.changeNode(old, { unschedulable: true }))).toBe(
          'NODE_NOT_FOUND',
        );
        await addNode({ name: 'n1' });
        for (const change of [{ unschedulable: true }, { addTaints: [STARTUP] }]) {
          expect(await codeOf(cluster.changeNode(old, change))).toBe('NODE_NOT_FOUND');
        }
        await cluster.deleteNode(old);
        const view = await cluster.refresh();
        expect(view.nodes).toHaveLength(1);
        expect(view.nodes[0]).toMatchObject({ unschedulable: false });
        expect(view.nodes[0]?.taints).not.toContainEqual(STARTUP);
      }),
    );

    it(
      'deletes it, and deleting it again is no error',
      onCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({ name: 'n1' });
        await cluster.deleteNode(ref);
        await cluster.deleteNode(ref);
        expect((await cluster.refresh()).nodes).toEqual([]);
      }),
    );
  });

  describe('evicting a pod', () => {
    it(
      'asks it to go',
      onCluster(open, async ({ cluster, addNode, addPod }) => {
        await addNode({ name: 'n1' });
        const pod = await addPod('p1', 'n1');
        expect(await cluster.evict(pod)).toEqual({ outcome: 'evicted' });
        const { pods } = await cluster.refresh();
        expect(pods.every(({ isTerminating }) => isTerminating)).toBe(true);
      }),
    );

    it(
      'is blocked by a budget, with a reason',
      onCluster(open, async ({ cluster, addNode, addPod, protectPod }) => {
        await addNode({ name: 'n1' });
        const pod = await addPod('p1', 'n1');
        await protectPod(pod);
        const answer = await cluster.evict(pod);
        expect(answer).toEqual({ outcome: 'blocked', reason: expect.stringMatching(/\w/) });
        expect((await cluster.refresh()).pods).toHaveLength(1);
      }),
    );

    it(
      'finds it gone when it is, or when another has its name',
      onCluster(open, async ({ cluster, addNode, addPod }) => {
        await addNode({ name: 'n1' });
        const pod = await addPod('p1', 'n1');
        const stranger = { ...pod, uid: '0a1b2c3d-0000-4000-8000-000000000000' };
        expect(await cluster.evict(stranger)).toEqual({ outcome: 'already-gone' });
        expect(await cluster.evict({ ...pod, name: 'p2' })).toEqual({ outcome: 'already-gone' });
        const { pods } = await cluster.refresh();
        expect(pods.map(({ isTerminating }) => isTerminating)).toEqual([false]);
      }),
    );
  });
}
