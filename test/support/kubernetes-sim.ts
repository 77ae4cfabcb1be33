// SPDX-License-Identifier: Apache-2.0
// A simulated Kubernetes API on a loopback port and a kubeconfig for it, for tests that run the built CLI.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { KubernetesSim, serveKubernetes } from '../../src/sim/kubernetes/index.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { aFolder } from './pvescaler.ts';

export async function aKubernetesSim() {
  const sim = new KubernetesSim({ clock: systemClock, random: systemRandom });
  const served = await serveKubernetes(sim);
  onTestFinished(() => served.close());
  sim.create('v1', 'configmaps', {
    metadata: { name: 'kube-root-ca.crt', namespace: 'kube-system' },
    data: { 'ca.crt': '-----BEGIN CERTIFICATE-----\nc2lt\n-----END CERTIFICATE-----\n' },
  });
  const kubeconfig = join(aFolder(), 'kubeconfig');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'sim', cluster: { server: served.url, 'insecure-skip-tls-verify': true } },
      ],
      users: [{ name: 'sim', user: { token: 'sim' } }],
      contexts: [{ name: 'sim', context: { cluster: 'sim', user: 'sim' } }],
      'current-context': 'sim',
    }),
  );
  return { sim, kubeconfig };
}
