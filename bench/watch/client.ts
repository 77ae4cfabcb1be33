// SPDX-License-Identifier: Apache-2.0
// The Kubernetes adapter, connected as in the product, in a separate process. Usage: node --expose-gc client.ts
// KUBECONFIG PODS; prints its figures as JSON.
import { openKubernetesCluster } from '../../src/kubernetes/index.ts';
import { openHttpTransport, systemClock, systemRandom } from '../../src/system/index.ts';

const [path = '', pods = '0'] = process.argv.slice(2);
const POLL_INTERVAL_MS = 100;
const MIB = 2 ** 20;

const errors: string[] = [];
const startedAt = systemClock.monotonic();
const cluster = await openKubernetesCluster({
  source: { kind: 'kubeconfig', path },
  openTransport: () => openHttpTransport({ unreachable: 'KUBERNETES_UNREACHABLE' }),
  clock: systemClock,
  random: systemRandom,
  onError: (error) => errors.push(error.message),
});
await cluster.waitForChange({ afterRevision: 0 });
const listedAt = systemClock.monotonic();

async function isComplete(): Promise<boolean> {
  const view = await cluster.view();
  const hasLastNode = view.nodes.some(({ labels }) => labels['last'] === 'true');
  return hasLastNode && view.pods.length === Number(pods) - 1;
}

while (!(await isComplete())) await systemClock.sleep(POLL_INTERVAL_MS);
const doneAt = systemClock.monotonic();

globalThis.gc?.();
const { heapUsed, rss } = process.memoryUsage();
const cpu = process.cpuUsage();
const seconds = (ms: number) => Number((ms / 1_000).toFixed(2));
console.log(
  JSON.stringify({
    heapMiB: Number((heapUsed / MIB).toFixed(1)),
    rssMiB: Number((rss / MIB).toFixed(1)),
    peakRssMiB: Number((process.resourceUsage().maxRSS / 1_024).toFixed(1)),
    seconds: seconds(doneAt - startedAt),
    listSeconds: seconds(listedAt - startedAt),
    updateSeconds: seconds(doneAt - listedAt),
    cpuSeconds: seconds((cpu.user + cpu.system) / 1_000),
    errors,
  }),
);
await cluster.close();
