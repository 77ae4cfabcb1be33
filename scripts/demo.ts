// SPDX-License-Identifier: Apache-2.0
// `npm run demo`: `pvescaler serve` in mode standalone, on a simulated Proxmox VE with three hosts and a simulated
// Kubernetes cluster without nodes. Pods are created, machines follow, pods run; the workload shrinks, a machine is
// drained; the workload is deleted, and every machine with it. Then it waits for a person's load until Ctrl-C.
// `-- --once` runs the cycle at maximum speed and ends. Exits with 0 only if every pod ran and nothing is left behind.
import { performance } from 'node:perf_hooks';
import { systemClock } from '../src/system/index.ts';
import { type DemoSite, startDemoSite } from './demo/site.ts';
import { Timeline } from './demo/timeline.ts';

const isOnce = process.argv.includes('--once');
/** Slow enough to watch, or limited by intervals only. */
const speed = isOnce ? 500 : 10;
const TIMEOUT_MS = 120_000;
const POLL_MS = 25;

type Kubernetes = DemoSite['kubernetes'];

function template(app: string, cpu: string, extra: { annotations?: object; spec?: object } = {}) {
  const requests = { cpu, memory: '512Mi' };
  return {
    metadata: { labels: { app }, annotations: { ...extra.annotations } },
    spec: {
      containers: [{ name: 'main', image: 'example/app', resources: { requests } }],
      terminationGracePeriodSeconds: 2,
      ...extra.spec,
    },
  };
}

function createWorkload(kubernetes: Kubernetes): void {
  const named = (name: string) => ({ name, namespace: 'default' });
  const selector = (app: string) => ({ matchLabels: { app } });
  kubernetes.create('apps/v1', 'deployments', {
    metadata: named('web'),
    spec: { replicas: 6, selector: selector('web'), template: template('web', '600m') },
  });
  kubernetes.create('policy/v1', 'poddisruptionbudgets', {
    metadata: named('web'),
    spec: { maxUnavailable: 1, selector: selector('web') },
  });
  const term = { labelSelector: selector('db'), topologyKey: 'kubernetes.io/hostname' };
  const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
  const spec = { affinity: { podAntiAffinity } };
  kubernetes.create('apps/v1', 'deployments', {
    metadata: named('db'),
    spec: { replicas: 2, selector: selector('db'), template: template('db', '1', { spec }) },
  });
  const annotations = { 'sim.pvescaler.dev/run-seconds': isOnce ? '500' : '100' };
  kubernetes.create('batch/v1', 'jobs', {
    metadata: named('report'),
    spec: {
      completions: 3,
      parallelism: 3,
      template: template('report', '500m', { annotations, spec: { restartPolicy: 'Never' } }),
    },
  });
}

function scale(kubernetes: Kubernetes, name: string, replicas: number): void {
  const metadata = { name, namespace: 'default' };
  kubernetes.change('apps/v1', 'deployments', { metadata, spec: { replicas } });
}

async function waitUntil(
  { failed }: DemoSite,
  timeline: Timeline,
  step: { readonly what: string; readonly isDone: () => boolean },
): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  while (performance.now() < deadline) {
    timeline.update();
    if (step.isDone()) return;
    await Promise.race([failed, systemClock.sleep(POLL_MS)]);
  }
  throw new Error(`${step.what} did not happen within ${TIMEOUT_MS / 1_000} s`);
}

async function runCycle(site: DemoSite, timeline: Timeline): Promise<void> {
  const { kubernetes } = site;
  timeline.row('== create 11 pods: web 6, db 2 on different nodes, report 3');
  createWorkload(kubernetes);
  const jobs = () => kubernetes.list('batch/v1', 'jobs')[0]?.['status'];
  const isJobDone = () => (jobs() as { readonly succeeded?: number } | undefined)?.succeeded === 3;
  await waitUntil(site, timeline, {
    what: 'every pod runs and the job is complete',
    isDone: () => timeline.count().running === 8 && isJobDone(),
  });
  const before = timeline.count().readyNodes;
  timeline.row('== scale web to 1: fewer machines suffice');
  scale(kubernetes, 'web', 1);
  await waitUntil(site, timeline, {
    what: 'a machine is removed and every pod runs',
    isDone: () => {
      const { readyNodes, running, pending, vms } = timeline.count();
      return readyNodes < before && vms === readyNodes && running === 3 && pending === 0;
    },
  });
  timeline.row('== delete all workloads');
  for (const name of ['web', 'db'])
    kubernetes.remove('apps/v1', 'deployments', { name, namespace: 'default' });
  kubernetes.remove('batch/v1', 'jobs', { name: 'report', namespace: 'default' });
  await waitUntil(site, timeline, {
    what: 'every machine is deleted',
    isDone: () => {
      const { vms } = timeline.count();
      return vms === 0 && kubernetes.list('v1', 'nodes').length === 0;
    },
  });
}

/** VMs, seeds, Nodes, pods and tokens that still exist. The image stays, as it does on real storage. */
function listLeftovers({ proxmox, kubernetes }: DemoSite): readonly string[] {
  const { vms, volumes } = proxmox.inspect();
  const names = (kind: string, objects: ReturnType<Kubernetes['list']>) =>
    objects.map(({ metadata }) => `${kind} ${metadata.name}`);
  return [
    ...vms.map(({ id }) => `VM ${id}`),
    ...volumes.filter(({ content }) => content !== 'import').map(({ id }) => id),
    ...names('Node', kubernetes.list('v1', 'nodes')),
    ...names('Pod', kubernetes.list('v1', 'pods')),
    ...names('Secret', kubernetes.list('v1', 'secrets')),
  ];
}

/** Until Ctrl-C. */
async function idle({ failed, kubeconfigPath, dashboardUrl }: DemoSite): Promise<void> {
  console.log(`
The cycle is complete. Add load, and watch ${dashboardUrl}:
  export KUBECONFIG=${kubeconfigPath}
  kubectl create deployment more --image=example/app --replicas=5
  kubectl set resources deployment more --requests=cpu=1
Ctrl-C ends the demo and removes everything.`);
  const stop = Promise.withResolvers<void>();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.resolve());
  await Promise.race([stop.promise, failed]).catch((error: unknown) => {
    failure = error;
  });
}

const site = await startDemoSite(speed);
console.log(`dashboard: ${site.dashboardUrl} (token for actions: ${site.dashboardToken})
health and metrics: ${site.healthUrl}/readyz, ${site.healthUrl}/metrics
kubectl: KUBECONFIG=${site.kubeconfigPath}
`);
const timeline = new Timeline(site);
let failure: unknown;
try {
  await runCycle(site, timeline);
  await waitUntil(site, timeline, {
    what: 'nothing is left behind',
    isDone: () => listLeftovers(site).length === 0,
  });
} catch (error) {
  failure = error;
  console.error(`\nThe log of the daemon ends with:\n${site.readLogTail()}`);
}
const leftovers = listLeftovers(site);
if (failure === undefined && !isOnce) await idle(site);
await site.close();
const neverRan = timeline.created.size - timeline.ran.size;
console.log(
  `\n${timeline.ran.size} of ${timeline.created.size} pods ran on at most ${timeline.mostNodes} nodes. ` +
    (leftovers.length === 0 ? 'Nothing was left behind.' : `LEFT BEHIND: ${leftovers.join(', ')}`),
);
if (failure !== undefined) console.error(failure instanceof Error ? failure.message : failure);
process.exitCode = failure === undefined && neverRan === 0 && leftovers.length === 0 ? 0 : 1;
