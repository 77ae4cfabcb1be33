// SPDX-License-Identifier: Apache-2.0
// The adapter's contract on a real API server.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterContract } from '../../src/ports/contract/cluster.contract.ts';
import { SkippingClock } from '../../src/ports/fakes/skipping-clock.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { type ApiServer, clusterBench, openClusterTransport } from '../kubernetes/cluster-bench.ts';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane({ nodeMonitorGraceSeconds: 600 });
});
afterAll(() => plane.stop());

const FORCE = { gracePeriodSeconds: 0 };

/** As empty as after its start. */
async function wipe(): Promise<void> {
  const { api } = plane;
  const leases = '/apis/coordination.k8s.io/v1/namespaces/pvescaler/leases';
  const tokens = '/api/v1/namespaces/kube-system/secrets';
  await api.call('DELETE', '/apis/policy/v1/namespaces/default/poddisruptionbudgets');
  await api.call('DELETE', '/api/v1/namespaces/default/pods', FORCE);
  await api.call('DELETE', '/api/v1/nodes');
  await api.call('DELETE', leases);
  await api.call('DELETE', `${tokens}?fieldSelector=type=bootstrap.kubernetes.io/token`);
  await waitUntil('an empty cluster', async () => {
    const left = await Promise.all([api.list('/api/v1/nodes'), api.list('/api/v1/pods')]);
    return left.flat().length === 0;
  });
}

async function server(): Promise<ApiServer> {
  await wipe();
  const { client, caPem } = await adminIdentity();
  return {
    url: plane.server,
    kubeconfig: plane.kubeconfig,
    clock: new SkippingClock(systemClock),
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

clusterContract('adapter and API server', async () => clusterBench(await server()));

it('trusts the server by the very bytes of its CA bundle', async () => {
  const bench = await clusterBench(await server());
  expect(await bench.cluster.serverCa()).toBe(plane.caPem);
  expect(await bench.cluster.uid()).toBe(plane.uid);
  await bench.cleanup();
});
