// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { BOOTSTRAP_GROUPS } from '../../model/bootstrap-groups.ts';
import type { BootstrapTokenRequest } from '../cluster.ts';
import { clusterDeclarationContract } from './cluster-declaration.contract.ts';
import { type OpenCluster, withCluster } from './cluster-fixture.ts';
import { clusterLeasesContract } from './cluster-leases.contract.ts';
import { clusterNodesContract } from './cluster-nodes.contract.ts';
import { clusterViewContract } from './cluster-view.contract.ts';
import { aborted, rejectionCode } from './store-fixture.contract.ts';

const TOKEN_REQUEST: BootstrapTokenRequest = {
  machine: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
  description: 'for worker-1',
  lifetimeMs: 900_000,
  groups: [BOOTSTRAP_GROUPS.k3s],
  usages: ['authentication', 'signing'],
};

export function clusterContract(name: string, open: OpenCluster): void {
  describe(`Cluster contract: ${name}`, () => {
    clusterViewContract(open);
    clusterNodesContract(open);
    clusterDeclarationContract(open);
    clusterLeasesContract(open);
    bootstrapTokenContract(open);
    eventAndErrorContract(open);
  });
}

function bootstrapTokenContract(open: OpenCluster): void {
  describe('bootstrap tokens', () => {
    it(
      'are different for each request',
      withCluster(open, async ({ cluster, tokens, now }) => {
        const before = now();
        const one = await cluster.createBootstrapToken(TOKEN_REQUEST);
        const two = await cluster.createBootstrapToken({
          ...TOKEN_REQUEST,
          usages: ['authentication'],
        });
        expect(one.token).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}$/);
        expect(one.token).not.toBe(two.token);
        // Kubernetes stores whole seconds; the token never outlives the returned time.
        expect(one.expiresAt).toBeLessThanOrEqual(now() + TOKEN_REQUEST.lifetimeMs);
        expect(one.expiresAt).toBeGreaterThan(before + TOKEN_REQUEST.lifetimeMs - 1_000);
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
      'are refused for a lifetime of %s ms',
      async (lifetimeMs) => {
        await withCluster(open, async ({ cluster, tokens }) => {
          const created = cluster.createBootstrapToken({ ...TOKEN_REQUEST, lifetimeMs });
          expect(await rejectionCode(created)).toBe('REQUEST_INVALID');
          expect(await tokens()).toEqual([]);
        })();
      },
    );

    it(
      'are deleted with all others of their machine',
      withCluster(open, async ({ cluster, tokens }) => {
        const { machine } = TOKEN_REQUEST;
        await cluster.createBootstrapToken(TOKEN_REQUEST);
        await cluster.createBootstrapToken(TOKEN_REQUEST);
        const other = await cluster.createBootstrapToken({ ...TOKEN_REQUEST, machine: 'other' });
        await cluster.deleteBootstrapTokens(machine);
        expect((await tokens()).map(({ token }) => token)).toEqual([other.token]);
        await cluster.deleteBootstrapTokens(machine);
        await cluster.createBootstrapToken(TOKEN_REQUEST);
        expect(await tokens()).toHaveLength(2);
      }),
    );

    it(
      'come with the CA of the server',
      withCluster(open, async ({ cluster }) => {
        expect(await cluster.serverCa()).toMatch(/^-----BEGIN CERTIFICATE-----\n/);
      }),
    );
  });
}

function eventAndErrorContract(open: OpenCluster): void {
  describe('events and errors', () => {
    it(
      'writes an Event',
      withCluster(open, async ({ cluster, addNode, events }) => {
        const { name, uid } = await addNode({ name: 'n1' });
        const regarding = { kind: 'Node', name, uid } as const;
        await cluster.emit({ regarding, type: 'Warning', reason: 'Test', message: 'a test event' });
        expect(await events('n1')).toContain('Warning Test a test event');
      }),
    );

    it(
      'emit resolves even if the Event cannot be written',
      withCluster(open, async ({ cluster, disconnect }) => {
        disconnect();
        const regarding = { kind: 'Node', name: 'n1' } as const;
        await cluster.emit({ regarding, type: 'Normal', reason: 'X', message: 'x' });
      }),
    );

    it(
      'rejects with KUBERNETES_UNREACHABLE while the API server is unreachable',
      withCluster(open, async ({ cluster, addNode, addPod, disconnect }) => {
        const node = await addNode({ name: 'n1' });
        const pod = await addPod('p1', 'n1');
        disconnect();
        const calls = [
          () => cluster.changeNode(node, { unschedulable: true }),
          () => cluster.declareNode(node, { labels: { a: 'b' } }),
          () => cluster.deleteNode(node),
          () => cluster.evict(pod),
          () => cluster.podsOn('n1'),
          () => cluster.attachedVolumes('n1', []),
          () => cluster.createBootstrapToken(TOKEN_REQUEST),
          () => cluster.acquireLease({ name: 'x', holder: 'a', durationMs: 1_000 }),
        ];
        for (const call of calls)
          expect(await rejectionCode(call())).toBe('KUBERNETES_UNREACHABLE');
      }),
    );

    it(
      'rejects with CANCELLED, without effect, after an abort and after close',
      withCluster(open, async ({ cluster, peer, addNode }) => {
        const node = await addNode({ name: 'n1' });
        const options = { signal: aborted() };
        expect(await rejectionCode(cluster.deleteNode(node, options))).toBe('CANCELLED');
        const other = await peer();
        const waiting = rejectionCode(other.waitForChange({ afterRevision: 1e9 }));
        await other.close();
        await other.close();
        expect(await waiting).toBe('CANCELLED');
        expect(await rejectionCode(other.view())).toBe('CANCELLED');
        expect(await rejectionCode(other.deleteNode(node))).toBe('CANCELLED');
        expect((await cluster.refresh()).nodes).toHaveLength(1);
      }),
    );
  });
}
