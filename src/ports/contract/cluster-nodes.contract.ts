// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { type OpenCluster, waitForNode, withCluster } from './cluster-fixture.ts';
import { rejectionCode } from './store-fixture.contract.ts';

const STARTUP = { key: 'pvescaler.dev/startup', value: '', effect: 'NoSchedule' } as const;

export function clusterNodesContract(open: OpenCluster): void {
  describe('changeNode and deleteNode', () => {
    it(
      'changes only the named fields',
      withCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({ name: 'n1', labels: { keep: '1' } });
        await cluster.changeNode(ref, { unschedulable: true });
        const node = await waitForNode(cluster, 'n1', ({ unschedulable }) => unschedulable);
        expect(node.labels).toMatchObject({ keep: '1' });
        await cluster.changeNode(ref, { unschedulable: false });
        await waitForNode(cluster, 'n1', ({ unschedulable }) => !unschedulable);
      }),
    );

    it(
      'changes a label that another manager set, and keeps the others',
      withCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({ name: 'n1', labels: { keep: '1', zone: 'a' } });
        for (let time = 0; time < 2; time += 1)
          await cluster.changeNode(ref, { labels: { zone: 'b' } });
        const node = await waitForNode(cluster, 'n1', ({ labels }) => labels['zone'] === 'b');
        expect(node.labels).toMatchObject({ keep: '1' });
      }),
    );

    it(
      'adds and removes taints idempotently and keeps other taints',
      withCluster(open, async ({ cluster, addNode }) => {
        const other = { key: 'other', value: 'v', effect: 'NoSchedule' } as const;
        const ref = await addNode({ name: 'n1', taints: [other] });
        await cluster.changeNode(ref, { addTaints: [STARTUP] });
        await cluster.changeNode(ref, { addTaints: [{ ...STARTUP, value: 'again' }] });
        const tainted = await waitForNode(cluster, 'n1', ({ taints }) =>
          taints.some(({ value }) => value === 'again'),
        );
        expect(tainted.taints.filter(({ key }) => key === STARTUP.key)).toHaveLength(1);
        await cluster.changeNode(ref, { removeTaintKeys: [STARTUP.key] });
        await cluster.changeNode(ref, { removeTaintKeys: [STARTUP.key] });
        const clean = await waitForNode(cluster, 'n1', ({ taints }) =>
          taints.every(({ key }) => key !== STARTUP.key),
        );
        expect(clean.taints).toContainEqual(other);
      }),
    );

    it(
      'loses no taint under concurrent changes',
      withCluster(open, async ({ cluster, peer, addNode, advanceUntil }) => {
        const ref = await addNode({ name: 'n1' });
        const other = await peer();
        const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
        const changes = keys.map((key, index) =>
          (index % 2 === 0 ? cluster : other).changeNode(ref, {
            addTaints: [{ key, value: '', effect: 'NoSchedule' }],
          }),
        );
        await advanceUntil(Promise.all(changes));
        // A lost taint would never appear in the view.
        await waitForNode(cluster, 'n1', ({ taints }) =>
          keys.every((wanted) => taints.some(({ key }) => key === wanted)),
        );
      }),
    );

    it(
      'does not change a different node of the same name',
      withCluster(open, async ({ cluster, addNode, removeNode }) => {
        const old = await addNode({ name: 'n1' });
        await removeNode('n1');
        expect(await rejectionCode(cluster.changeNode(old, { unschedulable: true }))).toBe(
          'NODE_NOT_FOUND',
        );
        await addNode({ name: 'n1' });
        for (const change of [{ unschedulable: true }, { addTaints: [STARTUP] }]) {
          expect(await rejectionCode(cluster.changeNode(old, change))).toBe('NODE_NOT_FOUND');
        }
        await cluster.deleteNode(old);
        const view = await cluster.refresh();
        expect(view.nodes).toHaveLength(1);
        expect(view.nodes[0]).toMatchObject({ unschedulable: false });
        expect(view.nodes[0]?.taints).not.toContainEqual(STARTUP);
      }),
    );

    it(
      'deletes a node, and deleting it again succeeds',
      withCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({ name: 'n1' });
        await cluster.deleteNode(ref);
        await cluster.deleteNode(ref);
        expect((await cluster.refresh()).nodes).toEqual([]);
      }),
    );
  });

  describe('podsOn', () => {
    it(
      'lists the pods of the node as they are at the time of the call',
      withCluster(open, async ({ cluster, addNode, addPod }) => {
        await addNode({ name: 'n1' });
        await addNode({ name: 'n2' });
        expect(await cluster.podsOn('n1')).toEqual([]);
        const pod = await addPod('p1', 'n1');
        await addPod('p2', 'n2');
        expect(await cluster.podsOn('n1')).toEqual([
          expect.objectContaining({ ...pod, nodeName: 'n1', isTerminating: false }),
        ]);
        await cluster.evict(pod);
        const left = await cluster.podsOn('n1');
        expect(left.every(({ isTerminating }) => isTerminating)).toBe(true);
      }),
    );
  });

  describe('attachedVolumes', () => {
    it(
      'names the volumes attached to the node, without those of the given claims',
      withCluster(open, async ({ cluster, addNode, attachVolume }) => {
        await addNode({ name: 'n1' });
        await addNode({ name: 'n2' });
        expect(await cluster.attachedVolumes('n1', [])).toEqual([]);
        const claim = { namespace: 'default', name: 'data' };
        const logs = { namespace: 'default', name: 'logs' };
        const volume = await attachVolume('n1', claim);
        const other = await attachVolume('n1', logs);
        await attachVolume('n2', { namespace: 'default', name: 'other' });
        expect((await cluster.attachedVolumes('n1', [])).toSorted()).toEqual(
          [volume, other].toSorted(),
        );
        const missing = { namespace: 'default', name: 'missing' };
        expect(await cluster.attachedVolumes('n1', [logs, missing])).toEqual([volume]);
      }),
    );
  });

  describe('evict', () => {
    it(
      'evicts the pod',
      withCluster(open, async ({ cluster, addNode, addPod }) => {
        await addNode({ name: 'n1' });
        const pod = await addPod('p1', 'n1');
        expect(await cluster.evict(pod)).toEqual({ outcome: 'evicted' });
        const { pods } = await cluster.refresh();
        expect(pods.every(({ isTerminating }) => isTerminating)).toBe(true);
      }),
    );

    it(
      'reports the reason when a PodDisruptionBudget blocks it',
      withCluster(open, async ({ cluster, addNode, addPod, protectPod }) => {
        await addNode({ name: 'n1' });
        const pod = await addPod('p1', 'n1');
        await protectPod(pod);
        const outcome = await cluster.evict(pod);
        expect(outcome).toEqual({ outcome: 'blocked', reason: expect.stringMatching(/\w/) });
        expect((await cluster.refresh()).pods).toHaveLength(1);
      }),
    );

    it(
      'reports already-gone for a missing pod and for a different pod of the same name',
      withCluster(open, async ({ cluster, addNode, addPod }) => {
        await addNode({ name: 'n1' });
        const pod = await addPod('p1', 'n1');
        const otherPod = { ...pod, uid: '0a1b2c3d-0000-4000-8000-000000000000' };
        expect(await cluster.evict(otherPod)).toEqual({ outcome: 'already-gone' });
        expect(await cluster.evict({ ...pod, name: 'p2' })).toEqual({ outcome: 'already-gone' });
        const { pods } = await cluster.refresh();
        expect(pods.map(({ isTerminating }) => isTerminating)).toEqual([false]);
      }),
    );
  });
}
