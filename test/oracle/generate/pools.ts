// SPDX-License-Identifier: Apache-2.0
// Generates a random cluster that is too small for its pods, and pools that could add machines.

import { podFromKubernetes } from '../../../src/model/pod-from-kubernetes.ts';
import { NO_RESOURCES, type Resources, resourceQuantities } from '../../../src/model/resources.ts';
import {
  type Packing,
  type PoolOffer,
  pack,
  snapshotFromKubernetes,
} from '../../../src/scheduling/index.ts';
import type { Case, Node } from '../objects.ts';
import { Random } from '../random.ts';
import { randomCase, randomPods } from './case.ts';
import { type DaemonSet, daemonSet } from './daemons.ts';
import { RACK, RACKS, REGION, REGION_NAME, ZONE, ZONES } from './labels.ts';
import { DECLARED_FEATURES } from './nodes.ts';

const GIB = 2 ** 30;

export interface PackCase extends Case {
  readonly pools: readonly PoolOffer[];
  readonly daemonSets: DaemonSet[];
}

function size(cpus: number, gpus: number): Resources {
  return {
    ...NO_RESOURCES,
    cpuMilli: cpus * 1000,
    memoryBytes: cpus * 4 * GIB,
    ephemeralStorageBytes: 100 * GIB,
    pods: 110,
    extended: gpus === 0 ? {} : { 'nvidia.com/gpu': gpus },
  };
}

// Without a size that is the largest in everything, the cheapest one that fits may exceed a limit that another keeps.
function sizeList(random: Random, name: string): PoolOffer['sizes'] {
  const sizes = [4, 8, 16, 32].map((cpus) => size(cpus, name === 'gpu' ? 2 : 0));
  const shapes = random.chance(0.3)
    ? [...sizes, { ...size(2, 0), memoryBytes: 64 * GIB }, { ...size(24, 0), memoryBytes: 8 * GIB }]
    : sizes;
  return shapes.map((capacity, i) => ({
    name: `${name}-${i}`,
    capacity,
    allocatable: capacity,
  }));
}

function limits(random: Random): NonNullable<PoolOffer['limits']> {
  const kind = random.pick(['machines', 'machines', 'cpu', 'memory']);
  if (kind === 'machines') return { machines: random.int(2, 12) };
  if (kind === 'cpu') return { cpuMilli: random.int(3, 40) * 1000 };
  return { memoryBytes: random.int(8, 160) * GIB };
}

function pool(random: Random, name: string): PoolOffer {
  const sizes = sizeList(random, name);
  const places = random.some(ZONES, 0.7).map((zone) => ({
    name: zone,
    labels: { [ZONE]: zone, [REGION]: REGION_NAME, [RACK]: random.pick(RACKS) },
    ...(random.chance(0.3) ? { limits: { machines: random.int(1, 4) } } : {}),
  }));
  return {
    name,
    labels: { disk: random.pick(['ssd', 'hdd']), cores: random.pick(['8', '16']) },
    taints:
      name === 'gpu' ? [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' as const }] : [],
    sizes: random.chance(0.7)
      ? sizes
      : { min: size(2, 0), max: size(24, 0), step: size(2, 0), reserved: NO_RESOURCES },
    ...(random.chance(0.8) ? { domains: places } : {}),
    ...(random.chance(0.5) ? { limits: limits(random) } : {}),
    ...(random.chance(0.7) ? { declaredFeatures: random.some(DECLARED_FEATURES, 0.6) } : {}),
  };
}

export function randomPackCase(seed: number): PackCase {
  const random = new Random(seed + 0x5bd1e995);
  const { cluster, pending, featureGates } = randomCase(seed);
  // Copies of one pod, as in a Deployment, and other pods.
  const copies = pending.flatMap((pod, p) =>
    random.times(random.int(1, 8), (index) => {
      const copy = structuredClone(pod);
      copy.metadata.name = `p${p}-${index}`;
      copy.metadata.uid = `uid-p${p}-${index}`;
      return copy;
    }),
  );
  const others = randomPods(random, cluster, random.int(0, 12));
  cluster.nodes = cluster.nodes.slice(0, random.int(0, 4));
  const all = [...copies, ...others];
  for (const { spec } of all) delete spec.nodeName;
  if (random.chance(0.2))
    for (const pod of random.some(all, 0.1))
      pod.status = { nominatedNodeName: `n${random.int(0, 3)}` };
  return {
    cluster,
    ...(featureGates !== undefined && { featureGates }),
    pending: all,
    daemonSets: random.times(random.pick([0, 0, 1, 2]), (i) => daemonSet(random, `d${i}`)),
    pools: random.some(['plain', 'gpu', 'spare'], 0.6).map((name) => pool(random, name)),
  };
}

export function runPack({ cluster, pending, pools, daemonSets, featureGates }: PackCase): Packing {
  const snapshot = snapshotFromKubernetes({ ...cluster, daemonSets, featureGates });
  if (!snapshot.ok) throw new Error(`invalid cluster: ${snapshot.problem}`);
  const pods = pending.map((source) => {
    const pod = podFromKubernetes(source);
    if (!pod.ok) throw new Error(`invalid pod: ${pod.problem}`);
    return pod.value;
  });
  return pack(snapshot.value, pods, { pools });
}

/** The nodes of the planned machines. */
export function plannedNodes(packing: Packing): Node[] {
  return packing.machines.map(({ node }) => ({
    metadata: { name: node.name, labels: { ...node.labels } },
    spec: { taints: node.taints.map((taint) => ({ ...taint })) },
    status: {
      allocatable: { ...resourceQuantities(node.allocatable) },
      declaredFeatures: [...node.declaredFeatures],
    },
  }));
}
