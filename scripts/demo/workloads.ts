// SPDX-License-Identifier: Apache-2.0
// The workloads of the demo.
import type { DemoSite } from './site.ts';

type Kubernetes = DemoSite['kubernetes'];
/** API version and plural. */
type Kind = readonly [string, string];

export const NEVER_FITS = 'huge';
const LOAD = 'load';
const LOAD_PODS = 4;
const DEPLOYMENTS: Kind = ['apps/v1', 'deployments'];
const JOBS: Kind = ['batch/v1', 'jobs'];
const BUDGETS: Kind = ['policy/v1', 'poddisruptionbudgets'];

interface PodOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: object;
}

/** Pods leave a lost node after seconds; the default of Kubernetes is five minutes. */
const TOLERATIONS = ['not-ready', 'unreachable'].map((name) => ({
  key: `node.kubernetes.io/${name}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 2,
}));

function template(app: string, cpu: string, { annotations = {}, spec = {} }: PodOptions = {}) {
  const requests = { cpu, memory: '512Mi' };
  return {
    metadata: { labels: { app }, annotations },
    spec: {
      containers: [{ name: 'main', image: 'example/app', resources: { requests } }],
      terminationGracePeriodSeconds: 2,
      tolerations: TOLERATIONS,
      ...spec,
    },
  };
}

function createDeployment(
  kubernetes: Kubernetes,
  name: string,
  { replicas, cpu, spec = {} }: { readonly replicas: number; readonly cpu: string; spec?: object },
): void {
  kubernetes.create('apps/v1', 'deployments', {
    metadata: { name, namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: template(name, cpu, { spec }),
    },
  });
}

function has(kubernetes: Kubernetes, kind: Kind, name: string): boolean {
  return kubernetes.list(...kind).some(({ metadata }) => metadata.name === name);
}

/**
 * 6 pods of `web`, of which one may be disrupted at a time, and 2 pods of `db` on different nodes. What exists already stays
 * as it is: an earlier scene created it, and a person may have changed or deleted some of it.
 */
export function createServices(kubernetes: Kubernetes): void {
  if (!has(kubernetes, DEPLOYMENTS, 'web'))
    createDeployment(kubernetes, 'web', { replicas: 6, cpu: '600m' });
  if (!has(kubernetes, BUDGETS, 'web'))
    kubernetes.create('policy/v1', 'poddisruptionbudgets', {
      metadata: { name: 'web', namespace: 'default' },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'web' } } },
    });
  if (has(kubernetes, DEPLOYMENTS, 'db')) return;
  const labelSelector = { matchLabels: { app: 'db' } };
  const term = { labelSelector, topologyKey: 'kubernetes.io/hostname' };
  const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
  const spec = { affinity: { podAntiAffinity } };
  createDeployment(kubernetes, 'db', { replicas: 2, cpu: '1', spec });
}

/** Whether each service has as many running pods on these nodes as its Deployment has replicas. */
export function areServicesRunning(
  kubernetes: Kubernetes,
  readyNodes: ReadonlySet<string>,
): boolean {
  const pods = kubernetes.list('v1', 'pods');
  return ['web', 'db'].every((name) => {
    const deployment = kubernetes
      .list('apps/v1', 'deployments')
      .find(({ metadata }) => metadata.name === name);
    const { replicas } = (deployment?.['spec'] ?? {}) as { readonly replicas?: number };
    const running = pods.filter(({ metadata, spec, status }) => {
      const { app } = (metadata.labels ?? {}) as { readonly app?: string };
      const { nodeName = '' } = (spec ?? {}) as { readonly nodeName?: string };
      const { phase } = (status ?? {}) as { readonly phase?: string };
      const isCounted = app === name && metadata.deletionTimestamp === undefined;
      return isCounted && phase === 'Running' && readyNodes.has(nodeName);
    });
    return running.length === (replicas ?? 0);
  });
}

export function scaleWeb(kubernetes: Kubernetes, replicas: number): void {
  const metadata = { name: 'web', namespace: 'default' };
  if (!has(kubernetes, DEPLOYMENTS, 'web')) return;
  kubernetes.change('apps/v1', 'deployments', { metadata, spec: { replicas } });
}

/** 6 pods of 1 CPU that run for this many seconds of a guest. */
export function createReport(kubernetes: Kubernetes, runSeconds: number): void {
  const annotations = { 'sim.pvescaler.dev/run-seconds': String(runSeconds) };
  kubernetes.create('batch/v1', 'jobs', {
    metadata: { name: 'report', namespace: 'default' },
    spec: {
      completions: 6,
      parallelism: 6,
      template: template('report', '1', { annotations, spec: { restartPolicy: 'Never' } }),
    },
  });
}

export function isReportDone(kubernetes: Kubernetes): boolean {
  const job = kubernetes
    .list('batch/v1', 'jobs')
    .find(({ metadata }) => metadata.name === 'report');
  return (job?.['status'] as { readonly succeeded?: number } | undefined)?.succeeded === 6;
}

export function createNeverFitting(kubernetes: Kubernetes): void {
  createDeployment(kubernetes, NEVER_FITS, { replicas: 1, cpu: '400' });
}

export function remove(kubernetes: Kubernetes, name: string): void {
  for (const kind of [DEPLOYMENTS, JOBS, BUDGETS]) {
    if (has(kubernetes, kind, name)) kubernetes.remove(...kind, { name, namespace: 'default' });
  }
}

export function addLoad(kubernetes: Kubernetes): string {
  const taken = new Set(listLoad(kubernetes));
  let number = 1;
  while (taken.has(`${LOAD}-${number}`)) number += 1;
  createDeployment(kubernetes, `${LOAD}-${number}`, { replicas: LOAD_PODS, cpu: '1' });
  return `Deployment ${LOAD}-${number} with ${LOAD_PODS} pods of 1 CPU was created`;
}

export function removeLoad(kubernetes: Kubernetes): string {
  const names = listLoad(kubernetes);
  for (const name of names) remove(kubernetes, name);
  return names.length === 0 ? 'there is no added load' : `${names.join(', ')} deleted`;
}

function listLoad(kubernetes: Kubernetes): readonly string[] {
  const names = kubernetes.list('apps/v1', 'deployments').map(({ metadata }) => metadata.name);
  return names.filter((name) => name.startsWith(`${LOAD}-`));
}
