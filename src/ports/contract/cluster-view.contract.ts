// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { type OpenCluster, onCluster, seen, seenNode } from './cluster-bench.ts';
import { codeOf } from './store-harness.contract.ts';

export function clusterViewContract(open: OpenCluster): void {
  describe('the view', () => {
    it(
      'names the cluster by a uid that every process sees',
      onCluster(open, async ({ cluster, peer }) => {
        const uid = await cluster.uid();
        expect(uid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
        expect(await (await peer()).uid()).toBe(uid);
      }),
    );

    it(
      'has the fields that are used of a node',
      onCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({
          name: 'n1',
          labels: { tier: 'small' },
          taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }],
          providerId: 'proxmox://lab/100',
          systemUuid: '0A1B2C3D-0000-4000-8000-00000000000F',
          ready: true,
        });
        const node = await seenNode(cluster, 'n1', ({ ready }) => ready);
        expect(node).toMatchObject({
          uid: ref.uid,
          providerId: 'proxmox://lab/100',
          systemUuid: '0a1b2c3d-0000-4000-8000-00000000000f',
          unschedulable: false,
          isTerminating: false,
          notReadyReason: '',
        });
        expect(node.labels['tier']).toBe('small');
        expect(node.taints).toContainEqual({ key: 'k', value: 'v', effect: 'NoSchedule' });
        expect(node.capacity['cpu']).toBe('2');
        expect(node.allocatable['memory']).toBe('4Gi');
        expect(node.createdAt).toBeGreaterThan(Date.UTC(2020, 0, 1));
        expect(node.readyChangedAt).toBeGreaterThan(Date.UTC(2020, 0, 1));
      }),
    );

    it(
      'says that a node is not ready, and why',
      onCluster(open, async ({ cluster, addNode }) => {
        await addNode({ name: 'n1', ready: false });
        const node = await seenNode(cluster, 'n1', ({ notReadyReason }) => notReadyReason !== '');
        expect(node.ready).toBe(false);
      }),
    );

    it(
      'follows what others do',
      onCluster(open, async ({ cluster, addNode, labelNode, removeNode }) => {
        await addNode({ name: 'n1' });
        await addNode({ name: 'n2' });
        await seenNode(cluster, 'n1');
        await labelNode('n1', ['by', 'somebody']);
        await seenNode(cluster, 'n1', ({ labels }) => labels['by'] === 'somebody');
        await removeNode('n1');
        const view = await seen(cluster, ({ nodes }) => nodes.every(({ name }) => name !== 'n1'));
        expect(view.nodes.map(({ name }) => name)).toContain('n2');
      }),
    );

    it(
      'has the pods and where they run',
      onCluster(open, async ({ cluster, addNode, addPod }) => {
        await addNode({ name: 'n1' });
        const ref = await addPod('p1', 'n1');
        const view = await seen(cluster, ({ pods }) => pods.some(({ name }) => name === 'p1'));
        expect(view.pods.find(({ name }) => name === 'p1')).toMatchObject({
          ...ref,
          nodeName: 'n1',
          isFinished: false,
        });
      }),
    );

    it(
      'gives out what does not change afterwards',
      onCluster(open, async ({ cluster, addNode }) => {
        await addNode({ name: 'n1' });
        await seenNode(cluster, 'n1');
        const before = await cluster.view();
        const names = before.nodes.map(({ name }) => name);
        await addNode({ name: 'n2' });
        await seenNode(cluster, 'n2');
        expect(before.nodes.map(({ name }) => name)).toEqual(names);
      }),
    );

    it(
      'stands still without a connection, says since when, and catches up',
      onCluster(open, async ({ cluster, addNode, removeNode, pass, ...bench }) => {
        await addNode({ name: 'n1' });
        await seenNode(cluster, 'n1');
        bench.cutOff();
        const cutAt = bench.now();
        await pass(600_000);
        await addNode({ name: 'n2' });
        await removeNode('n1');
        const view = await cluster.view();
        expect(view.nodes.map(({ name }) => name)).toEqual(['n1']);
        expect(view.freshAt).toBeLessThanOrEqual(cutAt);
        bench.reconnect();
        await pass(60_000);
        const after = await seen(cluster, ({ nodes }) => nodes.every(({ name }) => name !== 'n1'));
        expect(after.nodes.map(({ name }) => name)).toEqual(['n2']);
        expect((await cluster.refresh()).freshAt).toBeGreaterThan(cutAt);
      }),
    );

    it(
      'contains after a refresh what was there before it',
      onCluster(open, async ({ cluster, addNode }) => {
        await cluster.refresh();
        await addNode({ name: 'n1' });
        const view = await cluster.refresh();
        expect(view.nodes.map(({ name }) => name)).toContain('n1');
        expect((await cluster.view()).revision).toBeGreaterThanOrEqual(view.revision);
      }),
    );

    it(
      'tells of changes since a revision, at once or when they come',
      onCluster(open, async ({ cluster, addNode }) => {
        const { revision } = await cluster.refresh();
        const woken = cluster.changed({ after: revision });
        await addNode({ name: 'n1' });
        await woken;
        await seenNode(cluster, 'n1');
        await cluster.changed({ after: revision });
        const stopping = new AbortController();
        const waiting = cluster.changed({ after: 1e9, signal: stopping.signal });
        stopping.abort();
        expect(await codeOf(waiting)).toBe('CANCELLED');
      }),
    );
  });
}
