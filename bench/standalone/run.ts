// SPDX-License-Identifier: Apache-2.0
// Runs one workload in one mode, on a new control plane and a new simulated site, until no machine is left.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Api,
  type ApiObject,
  type ControlPlane,
  startControlPlane,
  waitUntil,
} from '../../test/e2e/controlplane/index.ts';
import { startProvider } from '../../test/e2e/support/autoscaler/provider-site.ts';
import { startAutoscaler } from '../../test/e2e/support/autoscaler/real-autoscaler.ts';
import { accountKubeconfig, applyManifests } from '../../test/e2e/support/manifests.ts';
import {
  countVmTasks,
  listLeftovers,
  type SimulatedSite,
  startSite,
  waitUntilReady,
} from '../../test/e2e/support/simulated-site.ts';
import { median } from '../benchmark.ts';
import { MachineMeter } from './machine-meter.ts';
import { PodRecorder } from './pod-times.ts';
import { autoscalerFlags, DELAYS, HOSTS, MAX_MACHINES, renderPools, SPEED } from './settings.ts';
import type { PodTemplate, Workload, WorkloadStep } from './workloads.ts';

const LIMIT_MS = 600_000;
const PODS = '/api/v1/namespaces/default/pods';
const REPLICA_SETS = '/apis/apps/v1/namespaces/default/replicasets';

/** Path of the Cluster Autoscaler's binary, or pvescaler alone. */
export type Decider = { readonly clusterAutoscaler: string } | 'standalone';

export interface RunFigures {
  readonly pods: number;
  /** From pending to bound. */
  readonly medianSeconds: number;
  readonly p95Seconds: number;
  readonly machines: number;
  /** Hours in which a VM was running, in simulated time. */
  readonly machineHours: number;
  readonly cpuHours: number;
  /** Of the whole workload. */
  readonly seconds: number;
}

interface RunningDecider {
  readonly site: SimulatedSite;
  readonly close: () => Promise<void>;
}

export async function runWorkload(workload: Workload, decider: Decider): Promise<RunFigures> {
  const plane = await startControlPlane();
  try {
    await applyManifests(plane);
    const running = await startDecider(plane, decider);
    try {
      return await measure(workload, plane.api, running.site);
    } finally {
      await running.close();
    }
  } finally {
    await plane.stop();
  }
}

const SITE = {
  hosts: HOSTS,
  maxMachines: MAX_MACHINES,
  simulator: { speed: SPEED },
  onTestFinished: () => undefined,
} as const;

async function startDecider(plane: ControlPlane, decider: Decider): Promise<RunningDecider> {
  const pools = renderPools();
  if (decider !== 'standalone') {
    const provider = await startProvider({ ...SITE, plane, pools });
    const autoscaler = await startAutoscaler({
      path: decider.clusterAutoscaler,
      plane,
      provider,
      flags: autoscalerFlags(),
      onTestFinished: () => undefined,
    });
    await autoscaler.waitForLog(/Starting main loop/);
    const close = async () => {
      await autoscaler.program.kill();
      await provider.close();
    };
    return { site: provider.site, close };
  }
  const kubeconfig = await accountKubeconfig(plane);
  const site = await startSite({
    ...SITE,
    plane,
    distribution: 'k3s',
    kubeconfig,
    mode: 'standalone',
    scan: `${DELAYS.scan}s`,
    config: pools,
  });
  await waitUntilReady(await site.serve('serve'));
  return { site, close: () => site.close() };
}

async function measure(workload: Workload, api: Api, site: SimulatedSite): Promise<RunFigures> {
  const pods = new PodRecorder(api);
  const meter = new MachineMeter(site.sim);
  const startedAt = performance.now();
  const scaled = new ScaledReplicas(api, workload.templates);
  try {
    for (const step of workload.steps) await runStep(step, scaled);
    await scaled.removeAll();
    await waitUntil('no machine is left', () => listLeftovers(site).vms.length === 0, LIMIT_MS);
  } finally {
    meter.stop();
    await pods.stop();
  }
  const seconds = pods.seconds.toSorted((one, other) => one - other);
  return {
    pods: seconds.length,
    medianSeconds: median(seconds),
    p95Seconds: seconds[Math.ceil(seconds.length * 0.95) - 1] ?? Number.NaN,
    machines: countVmTasks(site).created,
    machineHours: (meter.machineSeconds * SPEED) / 3_600,
    cpuHours: (meter.cpuSeconds * SPEED) / 3_600,
    seconds: (performance.now() - startedAt) / 1_000,
  };
}

async function runStep(step: WorkloadStep, scaled: ScaledReplicas): Promise<void> {
  if ('holdUnneededTimes' in step)
    await sleep(step.holdUnneededTimes * DELAYS.unneededTime * 1_000);
  else await scaled.scale(step.scale);
}

interface Pod extends ApiObject {
  readonly spec: { readonly nodeName?: string };
}

class ScaledReplicas {
  readonly #api: Api;
  readonly #templates: Workload['templates'];
  readonly #counts = new Map<string, number>();

  constructor(api: Api, templates: Workload['templates']) {
    this.#api = api;
    this.#templates = templates;
  }

  /** Resolves when all pods are bound. */
  async scale(counts: Readonly<Record<string, number>>): Promise<void> {
    for (const [name, count] of Object.entries(counts)) await this.#set(name, count);
    await waitUntil('all pods are bound', () => this.#areBound(), LIMIT_MS);
  }

  async removeAll(): Promise<void> {
    for (const name of this.#counts.keys()) await this.#set(name, 0);
  }

  async #set(name: string, replicas: number): Promise<void> {
    const isKnown = this.#counts.has(name);
    this.#counts.set(name, replicas);
    if (isKnown) await this.#api.patch(`${REPLICA_SETS}/${name}`, { spec: { replicas } });
    else await this.#api.create(REPLICA_SETS, replicaSet(name, replicas, this.#templates[name]));
  }

  async #areBound(): Promise<boolean> {
    const pods = await this.#api.list<Pod>(PODS);
    const staying = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const wanted = [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
    return staying.length === wanted && staying.every(({ spec }) => spec.nodeName !== undefined);
  }
}

const HOSTNAME = 'kubernetes.io/hostname';

function replicaSet(name: string, replicas: number, template: PodTemplate | undefined): object {
  if (template === undefined) throw new Error(`the workload has no pod template '${name}'`);
  const { cpu, memory, isAlone = false, isSpread = false } = template;
  const matchLabels = { app: name };
  const labelSelector = { matchLabels };
  const alone = { topologyKey: HOSTNAME, labelSelector };
  const spread = { ...alone, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' };
  return {
    metadata: { name },
    spec: {
      replicas,
      selector: labelSelector,
      template: {
        metadata: { labels: matchLabels },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [
            { name: 'app', image: 'example/app', resources: { requests: { cpu, memory } } },
          ],
          ...(isAlone && {
            affinity: {
              podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [alone] },
            },
          }),
          ...(isSpread && { topologySpreadConstraints: [spread] }),
        },
      },
    },
  };
}
