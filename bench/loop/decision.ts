// SPDX-License-Identifier: Apache-2.0
// From a watch event to the plan, snapshot included, in a cluster whose nodes all belong to machines.
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ClusterObserver, scalingInput } from '../../src/autoscaler/index.ts';
import { SETTINGS } from '../../src/autoscaler/testing/test-site.ts';
import { createFleet, type FleetCapacity, type FleetView } from '../../src/fleet/index.ts';
import { aPool, someSettings } from '../../src/fleet/testing/settings.ts';
import { KubernetesCluster } from '../../src/kubernetes/index.ts';
import type { Machine, MachineId } from '../../src/model/machine.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { decide, EMPTY_MEMORY, type Plan } from '../../src/scaling/index.ts';
import { systemClock } from '../../src/system/index.ts';
import {
  HOSTS,
  type Load,
  nodeObjects,
  PODS_PER_NODE,
  podObject,
  podObjects,
  zoneOf,
} from './cluster.ts';
import { PushedWatch } from './pushed-watch.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const SIZE = { cpu: 16, memoryBytes: 64 * GIB, diskBytes: 100 * GIB };

export interface DecisionFigures {
  readonly nodes: number;
  readonly pods: number;
  readonly load: Load;
  readonly pending: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  /** CPU time, which other load on the machine changes less: the mean of all runs. */
  readonly cpuMs: number;
  /** Steps of the last plan. */
  readonly steps: number;
  readonly unneeded: number;
  readonly heapMiB: number;
  readonly rssMiB: number;
}

export interface DecisionOptions {
  readonly nodes: number;
  readonly load: Load;
  readonly pending: number;
  readonly runs: number;
}

export async function measureDecision(options: DecisionOptions): Promise<DecisionFigures> {
  const { nodes, load, pending, runs } = options;
  const loop = await openLoop(options);
  const times: number[] = [];
  try {
    let plan = await warmUp(loop);
    const cpu = process.cpuUsage();
    for (let run = 0; run < runs; run += 1) {
      // Timers run between two events, as with a server in another process.
      await setImmediate();
      const startedAt = performance.now();
      plan = await loop.decideAfterEvent();
      times.push(performance.now() - startedAt);
    }
    const { user, system } = process.cpuUsage(cpu);
    return {
      nodes,
      pods: nodes * PODS_PER_NODE,
      load,
      pending,
      p50Ms: percentile(times, 0.5),
      p95Ms: percentile(times, 0.95),
      cpuMs: (user + system) / 1_000 / runs,
      steps: plan.steps.length,
      unneeded: plan.counts.unneeded,
      ...memoryUse(),
    };
  } finally {
    await loop.close();
  }
}

async function warmUp(loop: { decideAfterEvent(): Promise<Plan> }): Promise<Plan> {
  await loop.decideAfterEvent();
  return loop.decideAfterEvent();
}

async function openLoop({ nodes, load, pending }: DecisionOptions) {
  const running = podObjects(nodes, load);
  const waiting = Array.from({ length: pending }, (_, index) =>
    podObject({ index: running.length + index, cpuMilli: 700 }),
  );
  const watch = new PushedWatch(
    new Map([
      ['nodes', nodeObjects(nodes)],
      ['pods', [...running, ...waiting]],
    ]),
  );
  const cluster = new KubernetesCluster({
    transport: watch,
    server: 'http://bench.example',
    caPem: undefined,
    clock: systemClock,
    random: new SeededRandom(1),
  });
  await cluster.waitForChange({ afterRevision: 0 });
  const observer = new ClusterObserver({ cluster, clock: systemClock });
  const pools = [poolOf(nodes)];
  const view = await viewOf(nodes);
  let memory = EMPTY_MEMORY;
  let index = running.length + waiting.length;
  await observer.update();
  return {
    /** One pending pod is replaced by a new one; without pending pods, a running pod changes. */
    async decideAfterEvent(): Promise<Plan> {
      index = pushEvent(watch, { pending, index });
      await cluster.waitForChange({ afterRevision: observer.revision });
      const observation = await observer.update();
      if (!observation.isFresh) throw new Error(observation.reason);
      const decision = decide(
        scalingInput({
          observed: observation.observed,
          pools,
          view,
          capacity: CAPACITY,
          staleReason: () => undefined,
          settings: SETTINGS,
          memory,
          now: systemClock.now(),
          seed: 1,
        }),
      );
      ({ memory } = decision);
      return decision.plan;
    },
    close: () => cluster.close(),
  };
}

/** Returns the index of the next new pod. */
function pushEvent(
  watch: PushedWatch,
  { pending, index }: { readonly pending: number; readonly index: number },
): number {
  const version = watch.nextVersion();
  if (pending === 0) {
    const cpuMilli = 100 + (version % 2);
    const pod = podObject({ index: 0, cpuMilli, nodeName: 'node-0', version });
    watch.push('pods', 'MODIFIED', pod);
    return index;
  }
  watch.push('pods', 'DELETED', podObject({ index: index - pending, cpuMilli: 700, version }));
  const added = podObject({ index, cpuMilli: 700, version: watch.nextVersion() });
  watch.push('pods', 'ADDED', added);
  return index + 1;
}

function poolOf(nodes: number) {
  const pool = aPool();
  return aPool({
    join: 'k3s',
    joins: true,
    size: SIZE,
    sizes: { kind: 'choice', sizes: [{ name: undefined, ...SIZE }] },
    limits: { ...pool.limits, max: 2 * nodes },
    scaleUp: { ...pool.scaleUp, batchSize: 1_000 },
  });
}

/** All machines are ready. */
async function viewOf(nodes: number): Promise<FleetView> {
  const store = new MemoryStore({ clock: systemClock });
  for (let index = 0; index < nodes; index += 1) {
    const machine = machineOf(index);
    await store.machines.create(machine.id, machine);
  }
  const settings = someSettings([poolOf(nodes)]);
  const random = new SeededRandom(2);
  const fleet = createFleet({
    store,
    clock: systemClock,
    random,
    settings,
    hypervisors: new Map(),
  });
  await fleet.view.refresh();
  return fleet.view;
}

function machineOf(index: number): Machine {
  const name = `node-${index}`;
  return {
    id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}` as MachineId,
    pool: 'workers',
    phase: 'ready',
    phaseSince: Date.UTC(2026, 0, 1),
    requestedAt: Date.UTC(2026, 0, 1),
    size: SIZE,
    attempts: 0,
    nodeName: name,
    nodeUid: `uid-${name}`,
    placement: {
      region: 'bench',
      host: zoneOf(index),
      vmId: 1_000 + index,
      name,
      diskStorage: 'local-lvm',
      addresses: [],
    },
  };
}

const CAPACITY: FleetCapacity = {
  computedAt: 0,
  counted: new Set(),
  unplaced: new Map(),
  regions: [
    {
      region: 'bench',
      takenAt: 0,
      pools: [
        {
          pool: 'workers',
          hosts: HOSTS.map((host) => ({
            host,
            cpus: 10_000,
            memoryBytes: 50_000 * GIB,
            diskBytes: 500_000 * GIB,
          })),
          identities: { machines: 10_000, reason: '' },
        },
      ],
    },
  ],
};

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

function memoryUse(): Pick<DecisionFigures, 'heapMiB' | 'rssMiB'> {
  setFlagsFromString('--expose-gc');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the flag defines this function
  (runInNewContext('gc') as () => void)();
  const { heapUsed, rss } = process.memoryUsage();
  return { heapMiB: Math.round(heapUsed / MIB), rssMiB: Math.round(rss / MIB) };
}
