// SPDX-License-Identifier: Apache-2.0
// The environment of one seed of the autoscaler's soak: a simulated Proxmox VE whose guests join a simulated cluster, and
// a pvescaler process with driver and autoscaler, all on virtual time.
import { Autoscaler, type PlannedOnce, planOnce } from '../../src/autoscaler/index.ts';
import { SETTINGS } from '../../src/autoscaler/testing/test-site.ts';
import {
  type CheckDrain,
  createFleet,
  type Fleet,
  type FleetSettings,
  type PoolSettings,
} from '../../src/fleet/index.ts';
import { aJoiningPool, aJoiningSeed } from '../../src/fleet/testing/joining-test-fleet.ts';
import { aRegion, someSettings } from '../../src/fleet/testing/settings.ts';
import { KubernetesCluster } from '../../src/kubernetes/index.ts';
import { DRAIN_TAINT } from '../../src/model/drain.ts';
import type { Cluster } from '../../src/ports/cluster.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Log } from '../../src/ports/log.ts';
import type { Meters } from '../../src/ports/meters.ts';
import type { TransportRequest } from '../../src/ports/transport.ts';
import {
  createAuthority,
  KubernetesSim,
  userOfCertificate,
} from '../../src/sim/kubernetes/index.ts';
import { SimTransport } from '../kubernetes/sim-transport.ts';
import {
  type SimulatedRegion,
  simulatedRegion,
  threeHostCluster,
} from '../proxmox/simulated-region.ts';

const SERVER = 'https://kube.example:6443';
const REGION = 'lab';
const GIB = 2 ** 30;
const MINUTE_MS = 60_000;
const SCAN_MS = 15_000;
/** Pods of a stopped VM are still recorded after this time. */
const STEP_MS = 10_000;

type KubeObject = ReturnType<KubernetesSim['list']>[number];

/** A deliberate defect of the process. */
export interface ProcessMutation {
  /** The fleet as the autoscaler sees it. */
  readonly fleet?: (fleet: Fleet) => Fleet;
  readonly checkDrain?: CheckDrain;
  readonly request?: (request: TransportRequest) => TransportRequest;
}

export function poolSettings(
  name: string,
  { cpu, taints = [] }: { readonly cpu: number; readonly taints?: PoolSettings['taints'] },
): PoolSettings {
  const pool = aJoiningPool();
  const size = { cpu, memoryBytes: cpu * 2 * GIB, diskBytes: 20 * GIB };
  const seed = aJoiningSeed({ taints });
  const join = { ...seed.join, server: SERVER, install: 'binary' };
  return {
    ...pool,
    name,
    regions: [REGION],
    join: 'k3s' as const,
    size,
    sizes: { kind: 'choice' as const, sizes: [{ name: undefined, ...size }] },
    taints,
    limits: { ...pool.limits, max: 8 },
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the join with another server
    seed: { ...seed, join } as typeof seed,
    scaleUp: { ...pool.scaleUp, stabilizationWindowMs: 10_000 },
    scaleDown: {
      ...pool.scaleDown,
      unneededTimeMs: 5 * MINUTE_MS,
      delayAfterAddMs: 5 * MINUTE_MS,
      maxConcurrent: 2,
    },
  };
}

const POOLS = [poolSettings('small', { cpu: 2 }), poolSettings('large', { cpu: 4 })];

function fleetSettings(uid: string, pools: readonly PoolSettings[]): FleetSettings {
  return someSettings(pools, {
    cluster: uid,
    regions: {
      [REGION]: aRegion({
        name: REGION,
        vmIds: { from: 1_250, to: 1_999 },
        storage: { images: 'local', seeds: 'shared', disks: ['local-lvm'] },
      }),
    },
    orphans: 'delete',
    busyMs: 5_000,
  });
}

export interface AutoscalerSiteOptions {
  readonly mutation?: ProcessMutation;
  readonly pools?: readonly PoolSettings[];
  /** Each has 4 GiB of memory per CPU; absent = 16 CPUs. */
  readonly hostCpus?: number;
}

export class AutoscalerSite {
  readonly clock = new VirtualClock();
  readonly random: SeededRandom;
  readonly kubernetes: KubernetesSim;
  readonly region: SimulatedRegion;
  readonly violations: string[] = [];
  readonly log: string[] = [];
  readonly #mutation: ProcessMutation;
  readonly #store = new MemoryStore({ clock: this.clock });
  readonly #settings: FleetSettings;
  readonly #stop = new AbortController();
  #process:
    | { readonly stop: AbortController; readonly cluster: Cluster; readonly fleet: Fleet }
    | undefined;
  #processCount = 0;
  /** VMs that run, by id, with their names. */
  #running = new Map<number, string>();
  evictions = 0;
  /** How many more drains are followed by new pods at once, which may need the places of theirs. */
  bursts = 0;

  constructor(
    seed: number,
    { mutation = {}, pools = POOLS, hostCpus }: AutoscalerSiteOptions = {},
  ) {
    this.#mutation = mutation;
    this.random = new SeededRandom(seed);
    const authority = createAuthority();
    this.kubernetes = new KubernetesSim({
      clock: this.clock,
      random: new SeededRandom(seed + 1),
      controllers: {},
      join: { server: SERVER, authority },
    });
    const cluster = threeHostCluster();
    const hosts = cluster.hosts.map((host) =>
      hostCpus === undefined ? host : { ...host, cpus: hostCpus, memory: hostCpus * 4 * GIB },
    );
    this.region = simulatedRegion(
      {
        cluster: { ...cluster, hosts, vms: [], containers: [] },
        clock: this.clock,
        connect: ({ client }) => {
          const peer = client && { certificateUser: userOfCertificate(client.certPem) };
          return Promise.resolve(new SimTransport(this.kubernetes, peer));
        },
      },
      { region: REGION },
      'changes',
    );
    const [system] = this.kubernetes
      .list('v1', 'namespaces')
      .filter(({ metadata }) => metadata.name === 'kube-system');
    this.#settings = fleetSettings(system?.metadata.uid ?? '', pools);
    void this.kubernetes.run(this.#stop.signal);
  }

  /** Starts a process; the previous one, if any, was killed. */
  startProcess(): void {
    const { clock } = this;
    this.#processCount += 1;
    const random = new SeededRandom(this.#processCount * 1_000 + this.random.integer(1_000));
    const stop = new AbortController();
    const { request: change = (request: TransportRequest) => request } = this.#mutation;
    const cluster = new KubernetesCluster({
      transport: new MonitoredTransport(this.kubernetes, (request) => {
        const changed = change(request);
        this.#checkRequest(changed);
        return changed;
      }),
      server: SERVER,
      caPem: undefined,
      clock,
      random,
      watch: 'all',
    });
    const store = this.#store.reopen();
    const fleet = createFleet({
      store,
      clock,
      random,
      cluster,
      hypervisors: new Map([[REGION, this.region.hypervisor]]),
      settings: { ...this.#settings, holder: `process-${this.#processCount}` },
      checkDrain: (node, signal) =>
        (this.#mutation.checkDrain ?? autoscaler.checkDrain)(node, signal),
    });
    const autoscaler: Autoscaler = new Autoscaler({
      fleet: this.#mutation.fleet?.(fleet) ?? fleet,
      cluster,
      journal: store.journal,
      clock,
      random,
      log: SILENT,
      meters: NO_METERS,
      pools: Object.values(this.#settings.pools),
      settings: SETTINGS,
      scanMs: SCAN_MS,
      namespace: 'pvescaler',
    });
    const events = { onError: (error: unknown) => this.record(`driver: ${String(error)}`) };
    fleet.runDriver({ signal: stop.signal, events }).catch(() => undefined);
    autoscaler.run(stop.signal).catch(() => undefined);
    this.#process = { stop, cluster, fleet };
  }

  /** Ends as a killed process does: nothing is released. */
  async killProcess(): Promise<void> {
    this.record('the process is killed');
    this.#process?.stop.abort();
    await this.#process?.cluster.close();
    this.#process = undefined;
  }

  async close(): Promise<void> {
    await this.killProcess();
    for (const { id } of this.vms) this.region.sim.guest(id)?.stop();
    this.#stop.abort();
    await this.clock.advance(1_000);
  }

  /** What the autoscaler would decide now, without doing it. */
  plan(): Promise<PlannedOnce> {
    if (this.#process === undefined) throw new Error('no process runs');
    const { cluster, fleet, stop } = this.#process;
    const { clock, random } = this;
    const pools = Object.values(this.#settings.pools);
    const options = { fleet, cluster, clock, random, pools, settings: SETTINGS };
    return advanceUntilSettled(clock, planOnce({ ...options, signal: stop.signal }));
  }

  get vms() {
    return this.region.sim.inspect().vms;
  }

  get pods(): readonly KubeObject[] {
    return this.kubernetes.list('v1', 'pods');
  }

  record(text: string): void {
    this.log.push(`${Math.round(this.clock.monotonic() / 1_000)} s: ${text}`);
  }

  report(violation: string): void {
    this.violations.push(`${Math.round(this.clock.monotonic() / 1_000)} s: ${violation}`);
  }

  /** Advances the clock in steps, and checks the invariants after each; ends at the first violation. */
  async advance(minutes: number): Promise<void> {
    for (let passedMs = 0; passedMs < minutes * MINUTE_MS; passedMs += STEP_MS) {
      if (this.violations.length > 0) return;
      await this.clock.advance(STEP_MS);
      this.#checkStoppedVms();
    }
    // The requests of hours, with the seed ISOs in them, need too much memory.
    this.region.transport.requests.length = 0;
    this.kubernetes.requests.length = 0;
  }

  /** Every VM that pvescaler stops has no pods any more that its node must not lose. */
  #checkStoppedVms(): void {
    const running = new Map(
      this.vms.filter((vm) => vm.running).map(({ id, config }) => [id, config['name'] ?? '']),
    );
    for (const [id, name] of this.#running) {
      if (running.has(id)) continue;
      const lost = this.pods.filter((pod) => isHarmed(pod, name)).map((pod) => pod.metadata.name);
      if (lost.length > 0)
        this.report(`VM ${id} was stopped with running pods: ${lost.join(', ')}`);
    }
    this.#running = running;
  }

  /** The first time that a Node gets the taint, its drain begins. */
  #checkTaint(node: string | undefined): void {
    if (node === undefined) return;
    const [object] = this.kubernetes
      .list('v1', 'nodes')
      .filter(({ metadata }) => metadata.name === node);
    const { taints = [] } = (object?.['spec'] ?? {}) as { taints?: readonly { key: string }[] };
    if (object === undefined || taints.some(({ key }) => key === DRAIN_TAINT.key)) return;
    this.record(`node ${node} is drained`);
    const budgets = this.kubernetes.list('policy/v1', 'poddisruptionbudgets');
    for (const pod of this.pods.filter((one) => isHarmed(one, node)))
      if (findClosedBudget(budgets, pod) !== undefined)
        this.report(`node ${node} is drained, and a budget forbids to evict ${pod.metadata.name}`);
    this.#burst();
  }

  #burst(): void {
    if (this.bursts === 0 || this.random.integer(2) === 0) return;
    this.bursts -= 1;
    const app = `burst-${Math.round(this.clock.monotonic() / 1_000)}`;
    this.record(`create ${app}`);
    const resources = { requests: { cpu: '700m', memory: '256Mi' } };
    this.kubernetes.create('apps/v1', 'deployments', {
      metadata: { name: app, namespace: 'default' },
      spec: {
        replicas: 6,
        selector: { matchLabels: { app } },
        template: {
          metadata: { labels: { app } },
          spec: { containers: [{ name: 'main', image: 'x', resources }] },
        },
      },
    });
  }

  #checkRequest({ method, url, body }: TransportRequest): void {
    const { pathname } = new URL(url);
    if (method === 'PATCH' && typeof body === 'string' && body.includes(DRAIN_TAINT.key))
      this.#checkTaint(/\/api\/v1\/nodes\/([^/]+)$/.exec(pathname)?.[1]);
    const pod = /\/namespaces\/([^/]+)\/pods\/([^/]+)(?:\/(\w+))?$/.exec(pathname);
    if (pod === null) return;
    const [, namespace = '', name = '', subresource] = pod;
    if (method === 'DELETE') this.report(`pod ${name} is deleted, not evicted`);
    if (method === 'POST' && subresource === 'eviction') this.#checkEviction(namespace, name);
  }

  #checkEviction(namespace: string, name: string): void {
    const pod = this.pods.find((one) => one.metadata.name === name);
    // A repeated request for a pod that has ended or ends already.
    if (pod === undefined || isEnding(pod)) return;
    this.evictions += 1;
    this.record(`pod ${name} is evicted`);
    if (this.kubernetes.findPlaces({ namespace, name }).length === 0)
      this.report(`pod ${name} is evicted and fits on no other node`);
  }
}

/** A budget that allows no eviction of the pod, ever. */
function findClosedBudget(
  budgets: readonly KubeObject[],
  { metadata }: KubeObject,
): KubeObject | undefined {
  return budgets.find(({ spec }) => {
    const { maxUnavailable, selector } = spec as {
      readonly maxUnavailable: number;
      readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    };
    const { app } = (metadata['labels'] ?? {}) as Readonly<Record<string, string>>;
    return maxUnavailable === 0 && selector.matchLabels['app'] === app;
  });
}

function isEnding({ metadata, status }: KubeObject): boolean {
  const { phase } = (status ?? {}) as { readonly phase?: string };
  return metadata.deletionTimestamp !== undefined || phase === 'Succeeded' || phase === 'Failed';
}

function isHarmed(pod: KubeObject, node: string): boolean {
  const { nodeName } = (pod['spec'] ?? {}) as { readonly nodeName?: string };
  return nodeName === node && !isOfDaemonSet(pod) && !isEnding(pod);
}

export function isOfDaemonSet({ metadata }: KubeObject): boolean {
  const owners = (metadata['ownerReferences'] ?? []) as readonly { readonly kind: string }[];
  return owners.some(({ kind }) => kind === 'DaemonSet');
}

/** Shows every request before it is sent, and sends what is returned. */
class MonitoredTransport extends SimTransport {
  readonly #onRequest: (request: TransportRequest) => TransportRequest;

  constructor(sim: KubernetesSim, onRequest: (request: TransportRequest) => TransportRequest) {
    super(sim);
    this.#onRequest = onRequest;
  }

  override request(request: TransportRequest) {
    return super.request(this.#onRequest(request));
  }
}

const SILENT: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => SILENT,
};
const NO_METERS: Meters = { add: () => undefined, observe: () => undefined, set: () => undefined };
