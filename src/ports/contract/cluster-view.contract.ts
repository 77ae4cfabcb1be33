// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { type OpenCluster, waitForNode, waitForView, withCluster } from './cluster-fixture.ts';
import { rejectionCode } from './store-fixture.contract.ts';

export function clusterViewContract(open: OpenCluster): void {
  describe('the cluster view', () => {
    it(
      'identifies the cluster by a uid that is the same for every process',
      withCluster(open, async ({ cluster, peer }) => {
        const uid = await cluster.uid();
        expect(uid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
        expect(await (await peer()).uid()).toBe(uid);
      }),
    );

    it(
      'contains the fields of a node that the engine uses',
      withCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({
          name: 'n1',
          labels: { tier: 'small' },
          taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }],
          providerId: 'proxmox://lab/100',
          systemUuid: '0A1B2C3D-0000-4000-8000-00000000000F',
          ready: true,
        });
        const node = await waitForNode(cluster, 'n1', ({ ready }) => ready);
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
      'contains the reason why a node is not ready',
      withCluster(open, async ({ cluster, addNode }) => {
        await addNode({ name: 'n1', ready: false });
        const node = await waitForNode(
          cluster,
          'n1',
          ({ notReadyReason }) => notReadyReason !== '',
        );
        expect(node.ready).toBe(false);
      }),
    );

    it(
      'follows changes by others',
      withCluster(open, async ({ cluster, addNode, labelNode, removeNode }) => {
        await addNode({ name: 'n1' });
        await addNode({ name: 'n2' });
        await waitForNode(cluster, 'n1');
        await labelNode('n1', ['by', 'a-user']);
        await waitForNode(cluster, 'n1', ({ labels }) => labels['by'] === 'a-user');
        await removeNode('n1');
        const view = await waitForView(cluster, ({ nodes }) =>
          nodes.every(({ name }) => name !== 'n1'),
        );
        expect(view.nodes.map(({ name }) => name)).toContain('n2');
      }),
    );

    it(
      'contains the pods and their nodes',
      withCluster(open, async ({ cluster, addNode, addPod }) => {
        await addNode({ name: 'n1' });
        const ref = await addPod('p1', 'n1');
        const view = await waitForView(cluster, ({ pods }) =>
          pods.some(({ name }) => name === 'p1'),
        );
        expect(view.pods.find(({ name }) => name === 'p1')).toMatchObject({
          ...ref,
          nodeName: 'n1',
          isFinished: false,
        });
      }),
    );

    it(
      'contains disruption budgets and the labels of namespaces',
      withCluster(open, async ({ cluster, addNode, addPod, protectPod, addNamespace }) => {
        await addNode({ name: 'n1' });
        await protectPod(await addPod('p1', 'n1'));
        await addNamespace('team-a', { tier: 'gold' });
        const { workloads } = await waitForView(
          cluster,
          (view) =>
            view.workloads?.disruptionBudgets.length === 1 &&
            view.workloads.namespaces.has('team-a'),
        );
        expect(workloads?.disruptionBudgets).toMatchObject([
          { namespace: 'default', disruptionsAllowed: 0 },
        ]);
        expect(workloads?.namespaces.get('team-a')).toMatchObject({ tier: 'gold' });
      }),
    );

    it(
      'returns snapshots that do not change afterwards',
      withCluster(open, async ({ cluster, addNode }) => {
        await addNode({ name: 'n1' });
        await waitForNode(cluster, 'n1');
        const before = await cluster.view();
        const names = before.nodes.map(({ name }) => name);
        await addNode({ name: 'n2' });
        await waitForNode(cluster, 'n2');
        expect(before.nodes.map(({ name }) => name)).toEqual(names);
      }),
    );

    it(
      'stays unchanged while disconnected, reports its age, and catches up',
      withCluster(open, async ({ cluster, addNode, removeNode, advance, ...fixture }) => {
        await addNode({ name: 'n1' });
        await waitForNode(cluster, 'n1');
        fixture.disconnect();
        const disconnectedAt = fixture.now();
        await advance(600_000);
        await addNode({ name: 'n2' });
        await removeNode('n1');
        const view = await cluster.view();
        expect(view.nodes.map(({ name }) => name)).toEqual(['n1']);
        expect(view.freshAt).toBeLessThanOrEqual(disconnectedAt);
        fixture.reconnect();
        await advance(60_000);
        const after = await waitForView(cluster, ({ nodes }) =>
          nodes.every(({ name }) => name !== 'n1'),
        );
        expect(after.nodes.map(({ name }) => name)).toEqual(['n2']);
        expect((await cluster.refresh()).freshAt).toBeGreaterThan(disconnectedAt);
      }),
    );

    it(
      'contains after a refresh everything that existed before it',
      withCluster(open, async ({ cluster, addNode }) => {
        await cluster.refresh();
        await addNode({ name: 'n1' });
        const view = await cluster.refresh();
        expect(view.nodes.map(({ name }) => name)).toContain('n1');
        expect((await cluster.view()).revision).toBeGreaterThanOrEqual(view.revision);
      }),
    );

    it(
      'reports what changed since a revision',
      withCluster(open, async ({ cluster, addNode, addPod, removeNode }) => {
        await addNode({ name: 'n1' });
        await addNode({ name: 'n2' });
        await addPod('p1', 'n1');
        const before = await waitForView(
          cluster,
          ({ pods, nodes }) => pods.length === 1 && nodes.length === 2,
        );
        await removeNode('n2');
        const pod = await addPod('p2', 'n1');
        const after = await waitForView(
          cluster,
          ({ pods, nodes }) => pods.length === 2 && nodes.length === 1,
        );
        const changes = await cluster.changesSince(before.revision);
        expect(changes?.revision).toBeGreaterThanOrEqual(after.revision);
        expect(changes?.nodes.has('n2')).toBe(true);
        expect(changes?.nodes.get('n2')).toBeUndefined();
        expect(changes?.pods.get('default/p2')).toMatchObject(pod);
      }),
    );

    it(
      'notifies of changes after a revision, immediately or when they happen',
      withCluster(open, async ({ cluster, addNode }) => {
        const { revision } = await cluster.refresh();
        const woken = cluster.waitForChange({ afterRevision: revision });
        await addNode({ name: 'n1' });
        await woken;
        await waitForNode(cluster, 'n1');
        await cluster.waitForChange({ afterRevision: revision });
        const stopping = new AbortController();
        const waiting = cluster.waitForChange({ afterRevision: 1e9, signal: stopping.signal });
        stopping.abort();
        expect(await rejectionCode(waiting)).toBe('CANCELLED');
      }),
    );
  });
}
