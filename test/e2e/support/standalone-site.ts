// SPDX-License-Identifier: Apache-2.0
// pvescaler in mode standalone on a control plane of its own, with three pools; workloads, and what holds at the end of
// every scenario.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parseStoredInput } from '../../../src/scaling/index.ts';
import { areNodesFew, countMachinesNeeded } from '../../support/machines-needed.ts';
import {
  type ApiObject,
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
  waitUntil,
} from '../controlplane/index.ts';
import { EVICTION_AUDIT_RULES, findBudgetViolations } from './eviction-record.ts';
import { listNodes, type PodObject, readReadiness } from './kube-objects.ts';
import { accountKubeconfig, applyManifests } from './manifests.ts';
import {
  listLeftovers,
  POOL,
  type Replica,
  type SimulatedSite,
  type SiteOptions,
  startSite,
  waitUntilReady,
} from './simulated-site.ts';

/** Only ends a failed test: the machine may be loaded. */
export const LIMIT_MS = 240_000;
/** Set by CI, whose time is limited: leaves out the scenarios that take minutes. */
export const IS_SAMPLE = process.env['E2E_SAMPLE'] !== undefined;
/** Has the taint `dedicated=yes:NoSchedule`. */
export const DEDICATED = 'dedicated';
export const LARGE = 'large';
export const HOSTS = ['pve1', 'pve2', 'pve3', 'pve4'];

const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';

const SCALING = `    scaleUp: { stabilizationWindow: 1s, batchSize: 50 }
    scaleDown: { utilizationThreshold: 1, unneededTime: 3s, delayAfterAdd: 0s, delayAfterFailure: 5s, maxConcurrent: 3, drainTimeout: 15s }
`;

const CONFIG = `${SCALING}
  - name: ${LARGE}
    from: { image: noble }
    size: { cpu: 4, memory: 8Gi, disk: 20Gi }
    limits: { min: 0, max: 30 }
    labels: { tier: large }
${SCALING}
  - name: ${DEDICATED}
    from: { image: noble }
    size: { cpu: 2, memory: 4Gi, disk: 20Gi }
    limits: { min: 0, max: 10 }
    taints: ["dedicated=yes:NoSchedule"]
${SCALING}`;

export interface Deployment {
  readonly name: string;
  readonly replicas: number;
  readonly requests: Readonly<Record<string, string>>;
  /** Fields of the pods. */
  readonly pod?: Readonly<Record<string, unknown>>;
  /** Fields of the container. */
  readonly container?: Readonly<Record<string, unknown>>;
  /** Of its PodDisruptionBudget; absent = it has none. */
  readonly maxUnavailable?: number;
}

export class StandaloneSite {
  readonly plane: ControlPlane;
  readonly site: SimulatedSite;
  #replica: Replica | undefined;

  constructor(plane: ControlPlane, site: SimulatedSite) {
    this.plane = plane;
    this.site = site;
  }

  static async start(
    options: Pick<SiteOptions, 'vms'> & Pick<ControlPlaneOptions, 'nodeMonitorGraceSeconds'> = {},
  ): Promise<StandaloneSite> {
    const { vms, ...planeOptions } = options;
    const plane = await startControlPlane({ ...planeOptions, auditRules: EVICTION_AUDIT_RULES });
    await applyManifests(plane);
    const site = await startSite({
      plane,
      distribution: 'k3s',
      kubeconfig: await accountKubeconfig(plane),
      onTestFinished: () => undefined,
      hosts: HOSTS.length,
      maxMachines: 30,
      config: CONFIG,
      ...(vms !== undefined && { vms }),
    });
    return new StandaloneSite(plane, site);
  }

  async close(): Promise<void> {
    await this.site.close();
    await this.plane.stop();
  }

  /** The process that was started last. */
  get replica(): Replica {
    if (this.#replica === undefined) throw new Error('no replica was started');
    return this.#replica;
  }

  async serve(name = 'serve'): Promise<Replica> {
    this.#replica = await this.site.serve(name);
    await waitUntilReady(this.#replica);
    return this.#replica;
  }

  /** Kills the leader as `kill -9` does, and starts it again. */
  async killAndRestart(): Promise<void> {
    const { program, name } = this.replica;
    program.sendSignal('SIGKILL');
    await program.waitForExit();
    await this.serve(name);
  }

  // Workloads

  async deploy(...deployments: readonly Deployment[]): Promise<void> {
    for (const { name, replicas, requests, pod, container, maxUnavailable } of deployments) {
      const labels = { app: name };
      const selector = { matchLabels: labels };
      const containers = [
        { name: 'app', image: 'example/app', resources: { requests }, ...container },
      ];
      const template = {
        metadata: { labels },
        spec: { terminationGracePeriodSeconds: 1, containers, ...pod },
      };
      const { api } = this.plane;
      if (maxUnavailable !== undefined)
        await api.create(BUDGETS, { metadata: { name }, spec: { maxUnavailable, selector } });
      await api.create(DEPLOYMENTS, { metadata: { name }, spec: { replicas, selector, template } });
    }
  }

  async scale(name: string, replicas: number): Promise<void> {
    await this.plane.api.patch(`${DEPLOYMENTS}/${name}`, { spec: { replicas } });
  }

  /** Pods that are not being deleted. */
  async pods(app?: string): Promise<readonly PodObject[]> {
    const pods = await this.plane.api.list<PodObject>('/api/v1/namespaces/default/pods');
    return pods.filter(({ metadata }) => {
      const isChosen = app === undefined || metadata.labels?.['app'] === app;
      return isChosen && metadata.deletionTimestamp === undefined;
    });
  }

  async nodesOf(app: string): Promise<readonly string[]> {
    return (await this.pods(app)).map(({ spec }) => spec.nodeName ?? '');
  }

  async waitUntilRunning(app: string, count: number): Promise<void> {
    await waitUntil(
      `${count} pods of ${app} run`,
      async () => {
        const pods = await this.pods(app);
        const ready = pods.filter((pod) => readReadiness(pod) === 'True').length;
        if (pods.length !== count || ready !== count)
          throw new Error(`${pods.length} pods, ${ready} of them ready`);
        return true;
      },
      LIMIT_MS,
    );
  }

  // What was recorded

  /** Notes of the Events with that reason about an object. */
  async events(name: string, reason: string): Promise<readonly string[]> {
    const events = await this.plane.api.list<EventObject>('/apis/events.k8s.io/v1/events');
    return events
      .filter((event) => event.regarding.name === name && event.reason === reason)
      .map(({ note }) => note);
  }

  async waitForEvent(name: string, reason: string): Promise<string> {
    return waitUntil(
      `Event ${reason} about ${name}`,
      async () => (await this.events(name, reason))[0],
      LIMIT_MS,
    );
  }

  // The end of a scenario

  /** Every pod runs, on as few nodes as are needed, and nothing was leaked. */
  async expectSettled({ pending = [] }: { readonly pending?: readonly string[] } = {}) {
    const { api } = this.plane;
    await waitUntil(
      'all pods run, and every machine is a node',
      async () => {
        const waiting = (await this.pods())
          .filter((pod) => readReadiness(pod) !== 'True')
          .filter(({ metadata }) => !pending.includes(metadata.labels?.['app'] ?? ''));
        const nodes = await listNodes(api);
        const ids = nodes
          .filter((node) => readReadiness(node) === 'True')
          .map(({ spec }) => spec.providerID ?? '');
        const vms = this.machines.map((id) => `proxmox://lab/${id}`);
        const tokens = await this.listTokens();
        const stopped = this.site.sim.inspect().vms.filter(({ running }) => !running);
        const state = {
          waiting: waiting.map(({ metadata }) => metadata.name),
          ids,
          vms,
          tokens,
          stopped: stopped.map(({ id }) => id),
        };
        const isSettled =
          waiting.length === 0 &&
          tokens.length === 0 &&
          ids.toSorted().join() === vms.toSorted().join() &&
          nodes.length === vms.length;
        if (!isSettled) throw new Error(JSON.stringify(state));
        return true;
      },
      LIMIT_MS,
    );
    const counts = await waitUntil(
      'there are few nodes',
      async () => {
        const needed = await this.countNeeded();
        const nodes = (await listNodes(api)).length;
        if (!areNodesFew(nodes, needed)) throw new Error(`${nodes} nodes, ${needed} are needed`);
        return { nodes, needed };
      },
      LIMIT_MS,
    );
    expect(findBudgetViolations(this.plane)).toEqual([]);
    return counts;
  }

  /** Deletes all workloads, and waits until no machine is left, nor anything that belonged to one. */
  async removeWorkloads(): Promise<void> {
    const { api } = this.plane;
    for (const path of [DEPLOYMENTS, BUDGETS, '/api/v1/namespaces/default/pods']) {
      for (const { metadata } of await api.list(path))
        await api.call('DELETE', `${path}/${metadata.name}`);
    }
    await waitUntil(
      'nothing is left',
      async () => {
        const nodes = (await listNodes(api)).length;
        const left = { nodes, vms: this.machines, tokens: await this.listTokens() };
        if (nodes + left.vms.length + left.tokens.length > 0) throw new Error(JSON.stringify(left));
        return true;
      },
      LIMIT_MS,
    );
    expect(listLeftovers(this.site).isos).toEqual([]);
  }

  /** Ids of the VMs that are machines. */
  get machines(): readonly number[] {
    const names = [POOL, LARGE, DEDICATED].map((pool) => `${pool}-`);
    return this.site.sim
      .inspect()
      .vms.filter(({ config }) => names.some((name) => config['name']?.startsWith(name) === true))
      .map(({ id }) => id);
  }

  async listTokens(): Promise<readonly string[]> {
    const path =
      '/api/v1/namespaces/kube-system/secrets?fieldSelector=type%3Dbootstrap.kubernetes.io/token';
    return (await this.plane.api.list(path)).map(({ metadata }) => metadata.name);
  }

  /** How many machines the plan for all pods would have in an empty cluster. */
  async countNeeded(): Promise<number> {
    const file = join(this.site.folder, 'plan-input.json');
    const { exitCode, err } = await this.site.runCli('plan', '--save', file, '--force');
    if (exitCode !== 0) throw new Error(err);
    const stored = parseStoredInput(readFileSync(file, 'utf8'));
    if (stored === undefined) throw new Error(`${file} is no input of a plan`);
    return countMachinesNeeded(stored);
  }
}

interface EventObject extends ApiObject {
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly name: string };
}
