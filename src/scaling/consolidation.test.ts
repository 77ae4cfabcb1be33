// SPDX-License-Identifier: Apache-2.0
// Seeded workloads whose pods arrive in groups, on three pools with `utilizationThreshold: 1`: all pods run, then nothing
// happens any more, and there are as few nodes as the packing of all pods needs, or one more, or 5 %.
import { expect, it } from 'vitest';
import type { Pod } from '../model/pod.ts';
import { decide, type ScalingPool } from './index.ts';
import { aHost, anInput, aPod, aScalingPool, GIB } from './testing/builders.ts';
import { ModelCluster } from './testing/model-cluster.ts';

/** Of the further ones, each was stuck once: a pool was at its limit, or had no capacity for new machines instead of all others. */
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
];
const TICK_MS = 2_000;
const MAX_TICKS = 200;
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
      aPod({ name: `${app}-${replica}`, labels: { app }, spec }),
    );
  }).flat();
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

function run(seed: number): { readonly nodes: number; readonly needed: number } {
  const random = seededRandom(seed);
  const model = new ModelCluster({
    pools: POOLS,
    hosts: HOSTS,
    provisionMs: 2_000 + random(8_000),
  });
  const pods = somePods(random);
  const group = 10 + random(pods.length);
  for (let from = 0; from < pods.length; from += group) {
    model.add(pods.slice(from, from + group));
    model.tick(TICK_MS);
  }
  let quiet = 0;
  for (let tick = 0; tick < MAX_TICKS && quiet < QUIET_TICKS; tick += 1)
    quiet = model.tick(TICK_MS).steps.length === 0 ? quiet + 1 : 0;
  const log = `seed ${seed}\n${model.log.join('\n')}`;
  expect(quiet, log).toBe(QUIET_TICKS);
  expect(model.pending, log).toEqual([]);
  return { nodes: model.machines, needed: countNeeded(model.pods) };
}

it('workloads settle on few nodes, and nothing is added and removed again', () => {
  const results = SEEDS.map((seed) => run(seed));
  const exceeded = results.filter(
    ({ nodes, needed }) => nodes > Math.max(needed + 1, Math.floor(needed * 1.05)),
  );
  expect(exceeded).toEqual([]);
}, 120_000);
