// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { BOOTSTRAP_GROUPS } from '../../model/bootstrap-groups.ts';
import type { BootstrapTokenOrder } from '../cluster.ts';
import { type OpenCluster, onCluster } from './cluster-bench.ts';
import { clusterDeclarationContract } from './cluster-declaration.contract.ts';
import { clusterLeasesContract } from './cluster-leases.contract.ts';
import { clusterNodesContract } from './cluster-nodes.contract.ts';
import { clusterViewContract } from './cluster-view.contract.ts';
import { aborted, codeOf } from './store-harness.contract.ts';

const ORDER: BootstrapTokenOrder = {
  description: 'for worker-1',
  lifetimeMs: 900_000,
  groups: [BOOTSTRAP_GROUPS.k3s],
  usages: ['authentication', 'signing'],
};

export function clusterContract(name: string, open: OpenCluster): void {
  describe(`Cluster: ${name}`, () => {
    clusterViewContract(open);
    clusterNodesContract(open);
    clusterDeclarationContract(open);
    clusterLeasesContract(open);
    joiningContract(open);
    troubleContract(open);
  });
}

function joiningContract(open: OpenCluster): void {
  describe('joining', () => {
    it(
      'makes a token of its own for each order',
      onCluster(open, async ({ cluster, tokens, now }) => {
        const before = now();
        const one = await cluster.createBootstrapToken(ORDER);
        const two = await cluster.createBootstrapToken({ ...ORDER, usages: ['authentication'] });
        expect(one.token).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}$/);
        expect(one.token).not.toBe(two.token);
        // Kubernetes writes whole seconds; never later than promised.
        expect(one.expiresAt).toBeLessThanOrEqual(now() + ORDER.lifetimeMs);
        expect(one.expiresAt).toBeGreaterThan(before + ORDER.lifetimeMs - 1_000);
        const stored = await tokens();
        expect(stored.find(({ token }) => token === one.token)).toMatchObject({
          expiresAt: one.expiresAt,
          description: 'for worker-1',
          groups: ['system:bootstrappers:k3s:default-node-token'],
          usages: ['authentication', 'signing'],
        });
        expect(stored.find(({ token }) => token === two.token)?.usages).toEqual(['authentication']);
      }),
    );

    it.each([0, -1, 3_600_001, Number.NaN, Number.POSITIVE_INFINITY])(
      'makes none that lasts %s ms',
      async (lifetimeMs) => {
        await onCluster(open, async ({ cluster, tokens }) => {
          const order = cluster.createBootstrapToken({ ...ORDER, lifetimeMs });
          expect(await codeOf(order)).toBe('REQUEST_INVALID');
          expect(await tokens()).toEqual([]);
        })();
      },
    );

    it(
      'knows what to trust the server by',
      onCluster(open, async ({ cluster }) => {
        expect(await cluster.serverCa()).toMatch(/^-----BEGIN CERTIFICATE-----\n/);
      }),
    );
  });
}

function troubleContract(open: OpenCluster): void {
  describe('telling and failing', () => {
    it(
      'writes an Event',
      onCluster(open, async ({ cluster, addNode, events }) => {
        const { name, uid } = await addNode({ name: 'n1' });
        const about = { kind: 'Node', name, uid } as const;
        await cluster.emit({ about, type: 'Warning', reason: 'Odd', message: 'it is odd' });
        expect(await events('n1')).toContain('Warning Odd it is odd');
      }),
    );

    it(
      'does not fail for an Event that nobody takes',
      onCluster(open, async ({ cluster, cutOff }) => {
        cutOff();
        const about = { kind: 'Node', name: 'n1' } as const;
        await cluster.emit({ about, type: 'Normal', reason: 'X', message: 'x' });
      }),
    );

    it(
      'says that the API server is away',
      onCluster(open, async ({ cluster, addNode, addPod, cutOff }) => {
        const node = await addNode({ name: 'n1' });
        const pod = await addPod('p1', 'n1');
        cutOff();
        const calls = [
          () => cluster.changeNode(node, { unschedulable: true }),
          () => cluster.declareNode(node, { labels: { a: 'b' } }),
          () => cluster.deleteNode(node),
          () => cluster.evict(pod),
          () => cluster.createBootstrapToken(ORDER),
          () => cluster.acquireLease({ name: 'x', holder: 'a', durationMs: 1_000 }),
        ];
        for (const call of calls) expect(await codeOf(call())).toBe('KUBERNETES_UNREACHABLE');
      }),
    );

    it(
      'does nothing for a caller that gave up, and nothing after its end',
      onCluster(open, async ({ cluster, peer, addNode }) => {
        const node = await addNode({ name: 'n1' });
        const options = { signal: aborted() };
        expect(await codeOf(cluster.deleteNode(node, options))).toBe('CANCELLED');
        const other = await peer();
        const waiting = codeOf(other.changed({ after: 1e9 }));
        await other.close();
        await other.close();
        expect(await waiting).toBe('CANCELLED');
        expect(await codeOf(other.view())).toBe('CANCELLED');
        expect(await codeOf(other.deleteNode(node))).toBe('CANCELLED');
        expect((await cluster.refresh()).nodes).toHaveLength(1);
      }),
    );
  });
}
