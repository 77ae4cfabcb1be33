// SPDX-License-Identifier: Apache-2.0
import { clusterContract } from '../../src/ports/contract/cluster.contract.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { SkippingClock } from '../../src/ports/fakes/skipping-clock.ts';
import { KubernetesSim, serveKubernetes } from '../../src/sim/kubernetes/index.ts';
import { openHttpTransport, systemClock } from '../../src/system/index.ts';
import { clusterBench } from './cluster-bench.ts';

clusterContract('adapter and simulator over loopback', async () => {
  const clock = new SkippingClock(systemClock);
  const random = new SeededRandom(11);
  const sim = new KubernetesSim({ clock, random });
  const served = await serveKubernetes(sim);
  return clusterBench({
    url: served.url,
    caPem: '-----BEGIN CERTIFICATE-----\nc2lt\n-----END CERTIFICATE-----\n',
    clock,
    random,
    openTransport: () => openHttpTransport({ unreachable: 'KUBERNETES_UNREACHABLE' }),
    cleanup: () => served.close(),
  });
});
