// SPDX-License-Identifier: Apache-2.0
// Seeded workloads whose pods arrive in groups, on three pools with `utilizationThreshold: 1`: all pods run, then nothing
// happens any more, and there are as few nodes as the packing of all pods needs, or one more, or 5 %.
import { describe, expect, it } from 'vitest';
import type { Pod } from '../model/pod.ts';
import { findPreferred } from '../scheduling/testing/default-scheduler.ts';
import { decide, type ScalingPool } from './index.ts';
import { aHost, anInput, aPod, aScalingPool, GIB } from './testing/builders.ts';
import { ModelCluster, type ModelOptions } from './testing/model-cluster.ts';

/**
 * Of the further ones, each was stuck once: a pool was at its limit, or had no capacity for new machines instead of all others, or
 * pods were packed in another way than kube-scheduler places them (from 1,023 on).
 */
const SEEDS = [
  ...Array.from({ length: 60 }, (_, index) => index + 1),
  1_240,
  1_242,
  1_265,
  1_324,
  1_355,
  1_472,
  1_559,
  5_107,
  5_110,
  5_279,
  5_343,
  5_449,
  1_023,
  1_175,
  1_407,
  5_073,
];
const TICK_MS = 2_000;
const MAX_TICKS = 400;
/** The cluster has come to rest when nothing has been done for so long. */
const QUIET_TICKS = 15;

const SCALING = {
  limits: { min: 0, max: 30 },
  scaleUp: { batchSize: 50 },
  scaleDown: {
    utilizationThreshold: 1,
    unneededTime: '3s',
    delayAfterAdd: '0s',
    maxConcurrent: 3,
  },
};
const NAMES = ['small', 'large', 'dedicated'];
const POOLS = [
  aScalingPool({
    name: 'small',
    size: { cpu: 2, memory: '2Gi', disk: '20Gi' },
    labels: { tier: 'small' },
    ...SCALING,
  }),
  aScalingPool({ name: 'large', size: { cpu: 4, memory: '8Gi', disk: '20Gi' }, ...SCALING }),
  aScalingPool({
    name: 'dedicated',
    size: { cpu: 2, memory: '4Gi', disk: '20Gi' },
    taints: ['dedicated=yes:NoSchedule'],
    ...SCALING,
  }),
];
const HOSTS = ['pve1', 'pve2', 'pve3'].map((name) =>
  aHost(name, NAMES, { cpus: 200, memoryBytes: 400 * GIB }),
);
const RULES = [
  {},
  {},
  {},
  { nodeSelector: { tier: 'small' } },
  {
    nodeSelector: { 'autoscaler.proxmox/group': 'dedicated' },
    tolerations: [{ key: 'dedicated', operator: 'Exists' }],
  },
];
const CPUS = [20, 50, 100, 200, 250, 333, 500, 700, 900, 1_200, 1_500];
const MEMORIES_MIB = [32, 64, 128, 200, 256, 512, 700, 1_024, 1_500];

/** Returns an integer below its argument. */
type Random = (below: number) => number;

function seededRandom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state + 0x9e3779b9) >>> 0;
    const first = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    const second = Math.imul(first ^ (first >>> 15), 0x735a2d97);
    return Math.floor((((second ^ (second >>> 15)) >>> 0) / 2 ** 32) * below);
  };
}

function pick<T>(random: Random, values: readonly T[]): T {
  const value = values[random(values.length)];
  if (value === undefined) throw new RangeError('there is no value');
  return value;
}

function somePods(random: Random): readonly Pod[] {
  return Array.from({ length: 2 + random(5) }, (_, index) => {
    const app = `app-${index}`;
    const cpu = `${pick(random, CPUS)}m`;
    const memory = `${pick(random, MEMORIES_MIB)}Mi`;
    const spec = {
      containers: [{ resources: { requests: { cpu, memory } } }],
      ...pick(random, RULES),
    };
    const replicas = 1 + random(pick(random, [4, 12, 25]));
    return Array.from({ length: replicas }, (_one, replica) =>
      ofWorkload(aPod({ name: `${app}-${replica}`, labels: { app }, spec }), app),
    );
  }).flat();
}

function ofWorkload(pod: Pod, app: string): Pod {
  return { ...pod, controller: { kind: 'ReplicaSet', name: app, uid: app } };
}

function countNeeded(pods: readonly Pod[]): number {
  const unlimited = ({ config, learned }: ScalingPool) => ({
    config: { ...config, scaleUp: { ...config.scaleUp, batchSize: 1_000 } },
    learned,
  });
  const { plan } = decide(
    anInput({
      pods: pods.map((pod) => ({ ...pod, nodeName: '' })),
      hosts: HOSTS,
      pools: POOLS.map(unlimited),
    }),
  );
  return plan.steps.reduce(
    (sum, step) => sum + (step.kind === 'create' ? step.machines.length : 0),
    0,
  );
}

type Choose = NonNullable<ModelOptions['choose']>;

/** As the default profile of kube-scheduler does, which chooses at random between nodes of the same score. */
function asDefaultProfile(random: Random): Choose {
  return (pod, fits, snapshot) => {
    if (fits.length === 0) return undefined;
    const { nodes } = snapshot;
    return pick(
      random,
      findPreferred(pod, fits, { nodes, podsOn: (name) => snapshot.podsOn(name) }),
    );
  };
}

/** Nothing predicts it. */
function atRandom(random: Random): Choose {
  return (_, fits) => (fits.length === 0 ? undefined : pick(random, fits));
}

interface State {
  readonly seed: number;
  readonly nodes: number;
  readonly needed: number;
}

class Workload {
  readonly #seed: number;
  readonly random: Random;
  readonly #model: ModelCluster;

  constructor(seed: number, choose?: (random: Random) => Choose) {
    this.#seed = seed;
    this.random = seededRandom(seed);
    this.#model = new ModelCluster({
      pools: POOLS,
      hosts: HOSTS,
      provisionMs: 2_000 + this.random(8_000),
      ...(choose !== undefined && { choose: choose(seededRandom(seed + 1_000_000)) }),
    });
  }

  /** In groups that come one after the other. */
  add(pods: readonly Pod[]): void {
    const group = 10 + this.random(pods.length);
    for (let from = 0; from < pods.length; from += group) {
      this.#model.add(pods.slice(from, from + group));
      this.#model.tick(TICK_MS);
    }
  }

  /** About half of the pods, as they were before they were scheduled. */
  removeHalf(): readonly Pod[] {
    const removed = this.#model.pods.filter(() => this.random(2) === 0);
    this.#model.remove((pod) => removed.includes(pod));
    return removed.map((pod) => ({ ...pod, nodeName: '', uid: `${pod.uid}-again` }));
  }

  /** All pods run, and nothing happens any more. */
  settle(): State {
    let quiet = 0;
    for (let tick = 0; tick < MAX_TICKS && quiet < QUIET_TICKS; tick += 1)
      quiet = this.#model.tick(TICK_MS).steps.length === 0 ? quiet + 1 : 0;
    const log = `seed ${this.#seed}\n${this.#model.log.join('\n')}`;
    expect(quiet, log).toBe(QUIET_TICKS);
    expect(this.#model.pending, log).toEqual([]);
    return {
      seed: this.#seed,
      nodes: this.#model.machines,
      needed: countNeeded(this.#model.pods),
    };
  }
}

function settle(seed: number, choose?: (random: Random) => Choose): State {
  const workload = new Workload(seed, choose);
  workload.add(somePods(workload.random));
  return workload.settle();
}

function settleRepeatedly(seed: number, choose?: (random: Random) => Choose): readonly State[] {
  const workload = new Workload(seed, choose);
  workload.add(somePods(workload.random));
  const states = [workload.settle()];
  for (let round = 0; round < 3; round += 1) {
    const removed = workload.removeHalf();
    states.push(workload.settle());
    workload.add(removed);
    states.push(workload.settle());
  }
  return states;
}

function tooMany(states: readonly State[]): readonly State[] {
  return states.filter(
    ({ nodes, needed }) => nodes > Math.max(needed + 1, Math.floor(needed * 1.05)),
  );
}

const SCHEDULERS = [
  { name: 'the default profile', choose: asDefaultProfile },
  { name: 'a scheduler without spreading', choose: undefined },
];

describe.each(SCHEDULERS)('with $name', ({ choose }) => {
  it('workloads settle on few nodes, and nothing is added and removed again', () => {
    expect(tooMany(SEEDS.map((seed) => settle(seed, choose)))).toEqual([]);
  });

  it('workloads that shrink and grow settle each time', () => {
    const seeds = SEEDS.slice(0, 30);
    expect(tooMany(seeds.flatMap((seed) => settleRepeatedly(seed, choose)))).toEqual([]);
  });
});

it('workloads settle with a scheduler whose choice is not predicted', () => {
  const states = SEEDS.slice(0, 30).flatMap((seed) => settleRepeatedly(seed, atRandom));
  expect(states.length).toBeGreaterThan(0);
});
