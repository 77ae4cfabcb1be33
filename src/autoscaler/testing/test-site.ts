// SPDX-License-Identifier: Apache-2.0
// Processes with a driver and an autoscaler on fakes and virtual time, with guests that join and a small scheduler that
// binds pods and creates evicted ones again.

import type { FleetSettings, PoolSettings } from '../../fleet/index.ts';
import { createFleet, type Fleet } from '../../fleet/index.ts';
import {
  aJoiningPool,
  aJoiningTestFleet,
  type JoiningTestFleet,
} from '../../fleet/testing/joining-test-fleet.ts';
import { REGION, someSettings } from '../../fleet/testing/settings.ts';
import { machinesIn } from '../../fleet/testing/test-fleet.ts';
import type { Machine } from '../../model/machine.ts';
import { type Pod, podKey } from '../../model/pod.ts';
import { NO_RESOURCES } from '../../model/resources.ts';
import { Unreachable } from '../../ports/errors.ts';
import { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { aClusterPod } from '../../ports/fakes/sample-cluster.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { Log } from '../../ports/log.ts';
import type { Meters } from '../../ports/meters.ts';
import type { Store } from '../../ports/store.ts';
import type { ScalingSettings } from '../../scaling/index.ts';
import { checkFit, Snapshot } from '../../scheduling/index.ts';
import { Autoscaler } from '../autoscaler.ts';
import { schedulerNode } from '../observation.ts';

const GIB = 2 ** 30;
const MINUTE_MS = 60_000;

export const SETTINGS: ScalingSettings = {
  poolChoice: 'least-waste',
  expendablePriority: -10,
  newPodDelayMs: 0,
  gpuLabel: 'autoscaler.proxmox/gpu',
  pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
  guards: {
    maxTotalUnreadyPercentage: 45,
    okTotalUnreadyCount: 3,
    breaker: { machines: 3, pauseMs: 30 * MINUTE_MS },
  },
};

/** Its machines become Nodes with 2 CPUs and 4 GiB. */
export function aWorkerPool(overrides: Partial<PoolSettings> = {}): PoolSettings {
  const pool = aJoiningPool();
  return {
    ...pool,
    join: 'k3s',
    size: { cpu: 2, memoryBytes: 4 * GIB, diskBytes: 20 * GIB },
    sizes: {
      kind: 'choice',
      sizes: [{ name: undefined, cpu: 2, memoryBytes: 4 * GIB, diskBytes: 20 * GIB }],
    },
    ...overrides,
  };
}

export interface Process {
  readonly fleet: Fleet;
  readonly autoscaler: Autoscaler;
  /** Ends as a killed process does: nothing is released. */
  readonly kill: () => void;
}

export class TestSite {
  readonly parts: JoiningTestFleet;
  readonly settings: FleetSettings;
  /** `namespace/name` of every pod that was evicted. */
  readonly evicted: string[] = [];
  readonly #processes: Process[] = [];
  readonly #clusters: MemoryCluster[] = [];
  isProxmoxReadable = true;
  #created = 0;

  constructor(pools: readonly PoolSettings[] = [aWorkerPool()], settings = someSettings(pools)) {
    this.settings = settings;
    this.parts = aJoiningTestFleet(settings);
    this.parts.cluster.state.onEvicted = (pod) => this.#replace(pod);
    const { hypervisor } = this.parts;
    const view = hypervisor.view.bind(hypervisor);
    hypervisor.view = (options) =>
      this.isProxmoxReadable
        ? view(options)
        : Promise.reject(new Unreachable('PVE_UNREACHABLE', 'no route to host'));
  }

  get clock() {
    return this.parts.clock;
  }

  get cluster() {
    return this.parts.cluster;
  }

  /** Starts a process; several share the store, the cluster and the hypervisor. */
  start(
    holder = 'a',
    scaling: Partial<ScalingSettings> = {},
    store: Store = this.parts.store.reopen(),
  ): Process {
    const { clock, hypervisor, cluster: first } = this.parts;
    const random = new SeededRandom(this.#processes.length + 20);
    const cluster = new MemoryCluster({ clock, random, state: first.state });
    this.#clusters.push(cluster);
    const stop = new AbortController();
    const fleet = createFleet({
      store,
      clock,
      random,
      cluster,
      hypervisors: new Map([[REGION, hypervisor]]),
      settings: { ...this.settings, holder },
      checkDrain: (node, signal) => autoscaler.checkDrain(node, signal),
    });
    const autoscaler: Autoscaler = new Autoscaler({
      fleet,
      cluster,
      journal: store.journal,
      clock,
      random,
      log: SILENT,
      meters: NO_METERS,
      pools: Object.values(this.settings.pools),
      settings: { ...SETTINGS, ...scaling },
      scanMs: 15_000,
      namespace: 'pvescaler',
    });
    fleet.runDriver({ signal: stop.signal }).catch(() => undefined);
    autoscaler.run(stop.signal).catch(() => undefined);
    const process = { fleet, autoscaler, kill: () => stop.abort() };
    this.#processes.push(process);
    return process;
  }

  /** No process can read the cluster any more. */
  disconnect(): void {
    for (const cluster of this.#clusters) cluster.disconnect();
  }

  reconnect(): void {
    for (const cluster of this.#clusters) cluster.reconnect();
  }

  stop(): void {
    for (const { kill } of this.#processes) kill();
  }

  async advance(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      this.parts.guests.settle();
      this.#schedule();
      await this.clock.advance(1_000);
    }
  }

  machines(): Promise<readonly Machine[]> {
    return machinesIn(this.parts.store);
  }

  async phases(): Promise<readonly string[]> {
    return (await this.machines()).map(({ phase }) => phase).toSorted();
  }

  async reasons(): Promise<readonly string[]> {
    return (await this.parts.store.journal.read()).map(({ reason }) => reason);
  }

  /** A pending pod of a ReplicaSet with 1 CPU. */
  addPod(name: string, overrides: Partial<Pod> = {}): Pod {
    this.#created += 1;
    const requests = { ...NO_RESOURCES, cpuMilli: 1_000, pods: 1 };
    const pod = aClusterPod({
      name,
      uid: `uid-${this.#created}`,
      labels: { app: name },
      controller: { kind: 'ReplicaSet', name: 'web', uid: 'web' },
      createdAt: this.clock.now(),
      requests,
      held: requests,
      ...overrides,
    });
    this.cluster.state.putPod(pod);
    return pod;
  }

  deletePod(name: string): void {
    const pod = this.cluster.state.pods.get(`default/${name}`);
    if (pod !== undefined) this.cluster.state.removePod(pod);
  }

  nodeOf(name: string): string {
    return this.cluster.state.pods.get(`default/${name}`)?.nodeName ?? '';
  }

  pending(): readonly string[] {
    return [...this.cluster.state.pods.values()]
      .filter(({ nodeName }) => nodeName === '')
      .map(({ name }) => name);
  }

  /** The ReplicaSet creates the pod again, under the same name for simplicity. */
  #replace(pod: Pod): void {
    this.evicted.push(podKey(pod));
    this.cluster.state.removePod(pod);
    const { nodeName: _, ...rest } = pod;
    this.addPod(pod.name, { ...rest, uid: `${pod.uid}-again`, isTerminating: false });
  }

  #schedule(): void {
    const { state } = this.cluster;
    const pods = [...state.pods.values()];
    for (const pod of pods.filter(({ nodeName }) => nodeName === '')) {
      const ready = [...state.nodes.values()].filter((node) => node.ready);
      const nodes = ready.map(schedulerNode);
      const snapshot = Snapshot.of({ nodes, pods: [...state.pods.values()] });
      const node = nodes.find(({ name }) => checkFit(snapshot, pod, name).fits);
      if (node !== undefined) state.putPod({ ...pod, nodeName: node.name });
    }
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
