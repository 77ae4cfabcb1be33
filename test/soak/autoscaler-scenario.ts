// SPDX-License-Identifier: Apache-2.0
// One seed of the autoscaler's soak: episodes of changing workloads with faults and crashes, each followed by an hour in
// which nothing changes, and at the end the deletion of all workloads.
import type { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { AutoscalerSite, type ProcessMutation } from './autoscaler-site.ts';
import { pick } from './faults.ts';

const EPISODES = 2;
const CHANGES = 4;
/** Replicas of a Deployment. */
const MAX_REPLICAS = 7;
const SETTLE_MINUTES = 30;
const QUIET_MINUTES = 30;
const END_MINUTES = 40;

export interface AutoscalerSeedResult {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly log: readonly string[];
  readonly counts: Readonly<Record<'created' | 'destroyed' | 'evictions' | 'pods', number>>;
}

export async function runAutoscalerSeed(
  seed: number,
  mutation: ProcessMutation = {},
): Promise<AutoscalerSeedResult> {
  const site = new AutoscalerSite(seed, mutation);
  const pods = new Set<string>();
  try {
    site.startProcess();
    for (let episode = 0; episode < EPISODES && site.violations.length === 0; episode += 1) {
      await runEpisode(site, episode);
      for (const { metadata } of site.pods) pods.add(metadata.uid);
    }
    if (site.violations.length === 0) await endWorkloads(site);
  } finally {
    await site.close();
  }
  const { created, destroyed } = countTasks(site);
  const counts = { created, destroyed, evictions: site.evictions, pods: pods.size };
  return { seed, violations: site.violations, log: site.log, counts };
}

async function runEpisode(site: AutoscalerSite, episode: number): Promise<void> {
  const { random } = site;
  for (let change = 0; change < CHANGES; change += 1) {
    changeWorkload(site, `e${episode}c${change}`);
    if (random.integer(2) === 0) await disturb(site);
    await site.advance(1 + random.integer(6));
  }
  // Nodes that are half empty then: their pods are moved.
  shrinkWorkloads(site);
  site.bursts = 2;
  await site.advance(SETTLE_MINUTES / 2);
  site.bursts = 0;
  await site.advance(SETTLE_MINUTES / 2);
  checkAllRun(site);
  const before = describeMachines(site);
  const tasks = countTasks(site);
  await site.advance(QUIET_MINUTES);
  checkAllRun(site);
  const after = countTasks(site);
  if (after.created !== tasks.created)
    site.report(
      `machines were created for an unchanged workload: ${before} became ${describeMachines(site)}`,
    );
}

function describeMachines({ vms }: AutoscalerSite): string {
  return (
    vms
      .map(({ config }) => config['name'] ?? '')
      .sort()
      .join(' ') || 'none'
  );
}

function checkAllRun(site: AutoscalerSite): void {
  const waiting = site.pods.filter(
    ({ status }) => (status as { phase?: string }).phase === 'Pending',
  );
  if (waiting.length > 0) {
    const names = waiting.map(({ metadata }) => metadata.name).join(', ');
    site.report(`pods are still pending after ${SETTLE_MINUTES} minutes: ${names}`);
  }
}

function countTasks({ region }: AutoscalerSite) {
  const { tasks } = region.sim.saveState();
  const count = (type: string) =>
    tasks.filter((task) => task.type === type && /^(OK|WARNINGS)/.test(task.status ?? '')).length;
  return { created: count('qmcreate'), destroyed: count('qmdestroy') };
}

// Workloads

interface Template {
  readonly app: string;
  readonly random: SeededRandom;
}

function podTemplate({ app, random }: Template, annotations: Record<string, string> = {}) {
  const cpu = pick(random, ['200m', '500m', '900m', '1500m']);
  const memory = pick(random, ['256Mi', '512Mi', '1Gi']);
  return {
    metadata: { labels: { app }, annotations },
    spec: {
      containers: [{ name: 'main', image: 'x', resources: { requests: { cpu, memory } } }],
      terminationGracePeriodSeconds: 5,
      ...placementRule(app, random),
    },
  };
}

function placementRule(app: string, random: SeededRandom): object {
  const labelSelector = { matchLabels: { app } };
  const kind = random.integer(4);
  if (kind === 0) {
    const term = { labelSelector, topologyKey: 'kubernetes.io/hostname' };
    const required = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
    return { affinity: { podAntiAffinity: required } };
  }
  if (kind === 1) {
    const topologyKey = 'topology.kubernetes.io/zone';
    const whenUnsatisfiable = 'DoNotSchedule';
    return {
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey, whenUnsatisfiable, labelSelector }],
    };
  }
  return {};
}

/** Creates, scales or deletes a workload. */
function changeWorkload(site: AutoscalerSite, name: string): void {
  const { kubernetes, random } = site;
  const existing = kubernetes.list('apps/v1', 'deployments').map(({ metadata }) => metadata.name);
  const action = existing.length === 0 ? 0 : random.integer(4);
  if (action <= 1) return createDeployment(site, name);
  if (action === 3 && existing.length > 1) {
    const gone = pick(random, existing);
    site.record(`delete ${gone}`);
    kubernetes.remove('apps/v1', 'deployments', { name: gone, namespace: 'default' });
    return;
  }
  const metadata = { name: pick(random, existing), namespace: 'default' };
  const replicas = random.integer(MAX_REPLICAS + 1);
  site.record(`scale ${metadata.name} to ${replicas}`);
  kubernetes.change('apps/v1', 'deployments', { metadata, spec: { replicas } });
}

function shrinkWorkloads(site: AutoscalerSite): void {
  const { kubernetes } = site;
  site.record('halve all workloads');
  for (const { metadata, spec } of kubernetes.list('apps/v1', 'deployments')) {
    const { replicas } = spec as { readonly replicas: number };
    const { name } = metadata;
    kubernetes.change('apps/v1', 'deployments', {
      metadata: { name, namespace: 'default' },
      spec: { replicas: Math.ceil(replicas / 2) },
    });
  }
}

function createDeployment(site: AutoscalerSite, app: string): void {
  const { kubernetes, random } = site;
  const metadata = { name: app, namespace: 'default' };
  const replicas = 1 + random.integer(MAX_REPLICAS);
  const selector = { matchLabels: { app } };
  site.record(`create ${app} with ${replicas} pods`);
  const template = podTemplate({ app, random });
  kubernetes.create('apps/v1', 'deployments', { metadata, spec: { replicas, selector, template } });
  const budget = random.integer(4);
  if (budget < 3) {
    const spec = { maxUnavailable: Math.min(budget, 1), selector };
    kubernetes.create('policy/v1', 'poddisruptionbudgets', { metadata, spec });
  }
  if (random.integer(3) > 0) return;
  const job = podTemplate(
    { app: `${app}-job`, random },
    { 'sim.pvescaler.dev/run-seconds': '120' },
  );
  kubernetes.create('batch/v1', 'jobs', {
    metadata: { name: `${app}-job`, namespace: 'default' },
    spec: {
      completions: 2,
      parallelism: 2,
      ttlSecondsAfterFinished: 300,
      template: { ...job, spec: { ...job.spec, restartPolicy: 'Never' } },
    },
  });
}

async function disturb(site: AutoscalerSite): Promise<void> {
  const { kubernetes, region, random } = site;
  const status = { kind: 'status', status: 500 } as const;
  const disturbances: Readonly<Record<string, () => Promise<void> | void>> = {
    'watches break': () => kubernetes.watches.disconnect(),
    'the history is compacted': () => {
      kubernetes.compact();
      kubernetes.watches.disconnect();
    },
    'evictions fail': () =>
      kubernetes.faults.add({ verb: 'POST', path: 'eviction', fault: status, times: 3 }),
    'node writes fail': () =>
      kubernetes.faults.add({ verb: 'PATCH', path: '/nodes/', fault: status, times: 3 }),
    'a start fails': () => void region.sim.faults.add({ kind: 'task-fails', taskType: 'qmstart' }),
    'a creation is refused': () =>
      void region.sim.faults.add({
        kind: 'error',
        status: 500,
        endpoint: 'POST /nodes/{node}/qemu',
      }),
    'a deletion fails': () =>
      void region.sim.faults.add({ kind: 'task-fails', taskType: 'qmdestroy' }),
    'the process crashes': async () => {
      await site.killProcess();
      await site.advance(random.integer(3));
      site.startProcess();
    },
  };
  const name = pick(random, Object.keys(disturbances));
  site.record(name);
  await disturbances[name]?.();
}

// The end

async function endWorkloads(site: AutoscalerSite): Promise<void> {
  const { kubernetes } = site;
  site.record('delete all workloads');
  for (const [apiVersion, plural] of [
    ['apps/v1', 'deployments'],
    ['batch/v1', 'jobs'],
    ['policy/v1', 'poddisruptionbudgets'],
  ] as const) {
    for (const { metadata } of kubernetes.list(apiVersion, plural)) {
      kubernetes.remove(apiVersion, plural, { name: metadata.name, namespace: 'default' });
    }
  }
  await site.advance(END_MINUTES);
  const { vms, volumes } = site.region.sim.inspect();
  const left = [
    ...vms.map(({ id }) => `VM ${id}`),
    ...volumes.filter(({ content }) => content !== 'import').map(({ id }) => id),
    ...kubernetes.list('v1', 'nodes').map(({ metadata }) => `Node ${metadata.name}`),
    ...site.pods.map(({ metadata }) => `Pod ${metadata.name}`),
  ];
  if (left.length > 0) site.report(`left behind after ${END_MINUTES} minutes: ${left.join(', ')}`);
}
