// SPDX-License-Identifier: Apache-2.0
// The contract of the Kubernetes adapter on a real API server.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openKubernetesCluster } from '../../src/kubernetes/index.ts';
import { clusterContract } from '../../src/ports/contract/cluster.contract.ts';
import { SkippableClock } from '../../src/ports/fakes/skippable-clock.ts';
import type { Transport } from '../../src/ports/transport.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import {
  type ApiServer,
  openClusterBench,
  openClusterTransport,
} from '../kubernetes/cluster-bench.ts';
import { CUSTOM_STEPS } from '../kubernetes/custom-resource-steps.ts';
import { runCustomSteps } from '../kubernetes/run-custom-steps.ts';
import { APPLY_STEPS, runApplySteps } from '../kubernetes/server-side-apply-steps.ts';
import type { ApiObject } from './controlplane/api.ts';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane({ nodeMonitorGraceSeconds: 600 });
});
afterAll(() => plane.stop());

const FORCE = { gracePeriodSeconds: 0 };

/** Deletes everything that a test may have created. */
async function emptyCluster(): Promise<void> {
  const { api } = plane;
  const leases = '/apis/coordination.k8s.io/v1/namespaces/pvescaler/leases';
  const tokens = '/api/v1/namespaces/kube-system/secrets';
  await api.call('DELETE', '/apis/policy/v1/namespaces/default/poddisruptionbudgets');
  await api.call('DELETE', '/apis/storage.k8s.io/v1/volumeattachments');
  await api.call('DELETE', '/api/v1/namespaces/default/persistentvolumeclaims');
  await api.call('DELETE', '/api/v1/namespaces/default/pods', FORCE);
  await api.call('DELETE', '/api/v1/nodes');
  await api.call('DELETE', leases);
  await api.call('DELETE', `${tokens}?fieldSelector=type=bootstrap.kubernetes.io/token`);
  await waitUntil('an empty cluster', async () => {
    const left = await Promise.all([api.list('/api/v1/nodes'), api.list('/api/v1/pods')]);
    return left.flat().length === 0;
  });
}

async function prepareServer(): Promise<ApiServer> {
  await emptyCluster();
  const { client, caPem } = await adminIdentity();
  return {
    url: plane.server,
    kubeconfig: plane.kubeconfig,
    clock: new SkippableClock(systemClock),
    random: systemRandom,
    openTransport: () =>
      openClusterTransport({ caPem, client, isInsecure: false, serverName: undefined }),
    cleanup: () => Promise.resolve(),
  };
}

async function adminIdentity() {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromFile(plane.kubeconfig);
  const user = config.getCurrentUser();
  const text = (data: string | undefined) => Buffer.from(data ?? '', 'base64').toString('utf8');
  return {
    caPem: plane.caPem,
    client: { certPem: text(user?.certData), keyPem: text(user?.keyData) },
  };
}

clusterContract('adapter and API server', async () => openClusterBench(await prepareServer()));

it('server-side apply answers as in the script that the simulator is tested with', async () => {
  const { openTransport, url } = await prepareServer();
  const transport = await openTransport();
  const played = await runApplySteps(transport, url);
  await transport.close();
  expect(played).toEqual(APPLY_STEPS.map(({ title, expected }) => ({ title, response: expected })));
});

it('a custom resource answers as in the script that the simulator is tested with', async () => {
  const { openTransport, url } = await prepareServer();
  const transport = await openTransport();
  const played = await runCustomSteps(transport, url, () => systemClock.sleep(200));
  await transport.close();
  expect(played).toEqual(
    CUSTOM_STEPS.map(({ title, expected }) => ({ title, response: expected })),
  );
});

/** Runs `change` once, between the read and the first patch. */
function interceptFirstPatch(transport: Transport, change: () => Promise<unknown>): Transport {
  let isDone = false;
  return {
    request: async (request) => {
      if (request.method === 'PATCH' && !isDone) {
        isDone = true;
        await change();
      }
      return transport.request(request);
    },
    close: () => transport.close(),
  };
}

const EXTERNAL_CHANGES: readonly (readonly [string, () => Promise<unknown>, number])[] = [
  ['deleted', () => plane.api.delete('/api/v1/nodes/n1'), 0],
  [
    'recreated',
    async () => {
      await plane.api.delete('/api/v1/nodes/n1');
      return plane.api.create('/api/v1/nodes', { metadata: { name: 'n1' } });
    },
    1,
  ],
];

it.each(EXTERNAL_CHANGES)(
  'does not change a Node that was %s between read and write',
  async (_what, change, left) => {
    const { clock, random, kubeconfig } = await prepareServer();
    for (const how of ['declared', 'changed']) {
      const { metadata } = await plane.api.create('/api/v1/nodes', { metadata: { name: 'n1' } });
      const node = { name: 'n1', uid: metadata.uid };
      const cluster = await openKubernetesCluster({
        source: { kind: 'kubeconfig', path: kubeconfig },
        openTransport: async (tls) => interceptFirstPatch(await openClusterTransport(tls), change),
        clock,
        random,
      });
      const work =
        how === 'declared'
          ? cluster.declareNode(node, { labels: { a: 'b' }, providerId: 'proxmox://lab/1' })
          : cluster.changeNode(node, { unschedulable: true });
      await expect(work).rejects.toMatchObject({ code: 'NODE_NOT_FOUND' });
      const nodes = await plane.api.list<ApiObject & { spec: object }>('/api/v1/nodes');
      expect(nodes).toHaveLength(left);
      for (const { metadata: found, spec } of nodes) {
        expect(found.labels?.['a']).toBeUndefined();
        expect(spec).not.toHaveProperty('providerID');
        expect(spec).not.toHaveProperty('unschedulable');
      }
      await cluster.close();
      await emptyCluster();
    }
  },
);

it('returns the CA bundle of the server byte by byte', async () => {
  const bench = await openClusterBench(await prepareServer());
  expect(await bench.cluster.serverCa()).toBe(plane.caPem);
  expect(await bench.cluster.uid()).toBe(plane.uid);
  await bench.cleanup();
});
