// SPDX-License-Identifier: Apache-2.0
// Opens the Kubernetes store in a process of its own. Usage: node --expose-gc client.ts KUBECONFIG NAMESPACE;
// prints its figures as JSON.
import { systemClock } from '../../src/system/index.ts';
import { openBenchStore } from './open-bench-store.ts';

const MIB = 2 ** 20;
const [kubeconfig = '', namespace = ''] = process.argv.slice(2);

function heapMiB(): number {
  globalThis.gc?.();
  return Number((process.memoryUsage().heapUsed / MIB).toFixed(1));
}

const cpuBefore = process.cpuUsage();
const startedAt = systemClock.monotonic();
const store = await openBenchStore(kubeconfig, namespace);
const ms = systemClock.monotonic() - startedAt;
const { user, system } = process.cpuUsage(cpuBefore);
const figures = {
  startSeconds: Number((ms / 1_000).toFixed(2)),
  startCpuSeconds: Number(((user + system) / 1e6).toFixed(2)),
  heapMiB: heapMiB(),
  rssMiB: Number((process.memoryUsage().rss / MIB).toFixed(1)),
};
await store.close();
console.log(JSON.stringify(figures));
