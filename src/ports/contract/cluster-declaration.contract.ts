// SPDX-License-Identifier: Apache-2.0
// Declared fields of a Node, and conflicts with other field managers.
import { describe, expect, it } from 'vitest';
import type { Cluster, ClusterNode } from '../cluster.ts';
import { type OpenCluster, withCluster } from './cluster-fixture.ts';
import { rejectionCode } from './store-fixture.contract.ts';

const ROLE = 'node-role.kubernetes.io/worker';

async function readNode(cluster: Cluster): Promise<ClusterNode> {
  const { nodes } = await cluster.refresh();
  const [node] = nodes;
  if (node === undefined || nodes.length > 1)
    return expect.unreachable('expected exactly one node');
  return node;
}

export function clusterDeclarationContract(open: OpenCluster): void {
  describe('declareNode', () => {
    it(
      'sets declared fields, keeps other fields, and is idempotent',
      withCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({ name: 'n1', labels: { keep: '1' } });
        const declaration = { labels: { [ROLE]: '', 'a.b/c': 'd' }, annotations: { note: 'x' } };
        expect(await cluster.declareNode(ref, declaration)).toEqual([]);
        expect(await cluster.declareNode(ref, declaration)).toEqual([]);
        const { labels, annotations, declared } = await readNode(cluster);
        expect(labels).toMatchObject({ keep: '1', [ROLE]: '', 'a.b/c': 'd' });
        expect(annotations['note']).toBe('x');
        expect(declared.labels.toSorted()).toEqual(['a.b/c', ROLE]);
        expect(declared.annotations).toEqual(['note']);
      }),
    );

    it(
      'changes declared fields and removes those no longer declared',
      withCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({ name: 'n1', labels: { keep: '1' } });
        const annotations = { note: 'x' };
        await cluster.declareNode(ref, { labels: { a: '1', b: '1' }, annotations });
        expect(await cluster.declareNode(ref, { labels: { a: '2' } })).toEqual([]);
        const some = await readNode(cluster);
        expect(some.labels).toMatchObject({ keep: '1', a: '2' });
        expect(Object.keys(some.labels)).not.toContain('b');
        expect(Object.keys(some.annotations)).not.toContain('note');
        await cluster.declareNode(ref, { labels: {} });
        const { labels, declared } = await readNode(cluster);
        expect(Object.keys(labels)).not.toContain('a');
        expect(declared).toEqual({ labels: [], annotations: [] });
      }),
    );

    it(
      'keeps values of other managers, returns the conflicts, and applies the rest',
      withCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({ name: 'n1', labels: { tier: 'theirs', also: 'theirs' } });
        const labels = { tier: 'ours', also: 'ours', free: 'ours' };
        for (const _again of [1, 2]) {
          const conflicts = await cluster.declareNode(ref, { labels });
          const sorted = conflicts.toSorted((one, other) => one.key.localeCompare(other.key));
          expect(sorted).toEqual([
            { kind: 'label', key: 'also', manager: expect.stringMatching(/\w/) },
            { kind: 'label', key: 'tier', manager: expect.stringMatching(/\w/) },
          ]);
          const node = await readNode(cluster);
          expect(node.labels).toMatchObject({ tier: 'theirs', also: 'theirs', free: 'ours' });
          expect(node.declared.labels).toEqual(['free']);
        }
      }),
    );

    it(
      'keeps a value that another manager changed until that manager removes it',
      withCluster(open, async ({ cluster, addNode, labelNode }) => {
        const ref = await addNode({ name: 'n1' });
        const declaration = { labels: { tier: 'ours' } };
        await cluster.declareNode(ref, declaration);
        await labelNode('n1', ['tier', 'theirs']);
        expect((await readNode(cluster)).declared.labels).toEqual([]);
        expect(await cluster.declareNode(ref, declaration)).toMatchObject([{ key: 'tier' }]);
        expect((await readNode(cluster)).labels['tier']).toBe('theirs');
        await labelNode('n1', ['tier', null]);
        expect(await cluster.declareNode(ref, declaration)).toEqual([]);
        expect((await readNode(cluster)).labels['tier']).toBe('ours');
      }),
    );

    it(
      'neither removes nor changes a key that another manager owns too',
      withCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({ name: 'n1', labels: { both: '1' } });
        expect(await cluster.declareNode(ref, { labels: { both: '1' } })).toEqual([]);
        expect((await readNode(cluster)).declared.labels).toEqual(['both']);
        const changed = await cluster.declareNode(ref, { labels: { both: '2' } });
        expect(changed).toMatchObject([{ key: 'both' }]);
        await cluster.declareNode(ref, { labels: {} });
        const { labels, declared } = await readNode(cluster);
        expect(labels['both']).toBe('1');
        expect(declared.labels).toEqual([]);
      }),
    );

    it(
      'sets the provider id only if it is empty, and keeps it',
      withCluster(open, async ({ cluster, addNode }) => {
        const ref = await addNode({ name: 'n1' });
        const providerId = 'proxmox://lab/1';
        await cluster.declareNode(ref, { labels: { a: '1' }, providerId });
        await cluster.declareNode(ref, { labels: { a: '1' }, providerId });
        await cluster.declareNode(ref, { labels: { b: '1' } });
        const other = { labels: { half: 'done' }, providerId: 'proxmox://lab/2' };
        expect(await rejectionCode(cluster.declareNode(ref, other))).toBe('PROVIDER_ID_SET');
        const node = await readNode(cluster);
        expect(node.providerId).toBe(providerId);
        expect(node.labels['b']).toBe('1');
        expect(node.labels['half']).toBeUndefined();
      }),
    );

    it(
      'neither creates a node nor changes a different node of the same name',
      withCluster(open, async ({ cluster, addNode, removeNode }) => {
        const old = await addNode({ name: 'n1' });
        await removeNode('n1');
        const declaration = { labels: { a: '1' }, providerId: 'proxmox://lab/1' };
        expect(await rejectionCode(cluster.declareNode(old, declaration))).toBe('NODE_NOT_FOUND');
        expect((await cluster.refresh()).nodes).toEqual([]);
        await addNode({ name: 'n1' });
        expect(await rejectionCode(cluster.declareNode(old, declaration))).toBe('NODE_NOT_FOUND');
        const node = await readNode(cluster);
        expect(node.providerId).toBe('');
        expect(node.labels['a']).toBeUndefined();
      }),
    );

    it(
      'succeeds concurrently with taint changes and equal declarations',
      withCluster(open, async ({ cluster, peer, addNode, advanceUntil }) => {
        const ref = await addNode({ name: 'n1' });
        const other = await peer();
        const declaration = { labels: { a: '1' }, providerId: 'proxmox://lab/1' };
        const addTaints = [{ key: 'k', value: '', effect: 'NoSchedule' } as const];
        const work = [cluster, other].flatMap((one) => [
          one.declareNode(ref, declaration),
          one.changeNode(ref, { addTaints, unschedulable: true }),
        ]);
        await advanceUntil(Promise.all(work));
        const node = await readNode(cluster);
        expect(node).toMatchObject({ providerId: 'proxmox://lab/1', unschedulable: true });
        expect(node.labels['a']).toBe('1');
        expect(node.taints).toContainEqual(addTaints[0]);
        expect(node.declared.labels).toEqual(['a']);
      }),
    );
  });
}
