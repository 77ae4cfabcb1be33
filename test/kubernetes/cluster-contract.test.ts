// SPDX-License-Identifier: Apache-2.0
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clusterContract } from '../../src/ports/contract/cluster.contract.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { SkippableClock } from '../../src/ports/fakes/skippable-clock.ts';
import { KubernetesSim, serveKubernetes } from '../../src/sim/kubernetes/index.ts';
import { openHttpTransport, systemClock } from '../../src/system/index.ts';
import { openClusterBench } from './cluster-bench.ts';

function kubeconfigFor(server: string): string {
  const ca = Buffer.from('-----BEGIN CERTIFICATE-----\nc2lt\n-----END CERTIFICATE-----\n');
  const cluster = {
    server,
    'certificate-authority-data': ca.toString('base64'),
    'insecure-skip-tls-verify': true,
  };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'sim', cluster }],
    users: [{ name: 'sim', user: { token: 'sim-token' } }],
    contexts: [{ name: 'sim', context: { cluster: 'sim', user: 'sim' } }],
    'current-context': 'sim',
  });
}

clusterContract('KubernetesCluster against the simulated API server', async () => {
  const clock = new SkippableClock(systemClock);
  const random = new SeededRandom(11);
  const sim = new KubernetesSim({ clock, random });
  const served = await serveKubernetes(sim);
  const folder = await mkdtemp(join(tmpdir(), 'pvescaler-kubernetes-'));
  const kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, kubeconfigFor(served.url));
  return openClusterBench({
    url: served.url,
    kubeconfig,
    clock,
    random,
    openTransport: () => openHttpTransport({ unreachable: 'KUBERNETES_UNREACHABLE' }),
    cleanup: async () => {
      await served.close();
      await rm(folder, { recursive: true });
    },
  });
});
