// SPDX-License-Identifier: Apache-2.0
// Simulates the drain of every node of a cluster, one at a time, as a scan for nodes to remove does.

import { nodeFromKubernetes } from '../../src/model/node.ts';
import { podFromKubernetes } from '../../src/model/pod-from-kubernetes.ts';
import type { PodSource, PodSpecSource } from '../../src/model/pod-source.ts';
import { Snapshot, simulateDrain } from '../../src/scheduling/index.ts';
import { Random } from '../../test/oracle/random.ts';
import { median } from '../benchmark.ts';

const PODS_PER_NODE = 30;
const REPLICAS = 20;
const ZONES = ['a', 'b', 'c'] as const;
const ZONE = 'topology.kubernetes.io/zone';
const HOSTNAME = 'kubernetes.io/hostname';

/**
 * `spare`: half of the cluster is used. `full`: no node has space for any pod. `fragmented`: every pod fits
 * somewhere, but never all pods of a node.
 */
export const UTILIZATIONS = ['spare', 'full', 'fragmented'] as const;
export type Utilization = (typeof UTILIZATIONS)[number];

/** CPU in thousandths that is free on a node beside its pods. A pod requests between 100 and 500. */
const FREE_CPU: Readonly<Record<Utilization, (random: Random, index: number) => number>> = {
  spare: () => 8000,
  full: () => 90,
  fragmented: (random, index) => (index < 10 ? 500 : random.int(0, 90)),
};

export interface ScaleDown {
  readonly nodes: number;
  readonly utilization: Utilization;
  /** Wall time and CPU time for all candidates. */
  readonly ms: number;
  readonly cpuMs: number;
  /** How many nodes could be drained. */
  readonly possible: number;
}

export interface DrainOptions {
  readonly nodes: number;
  readonly utilization: Utilization;
  readonly runs: number;
}

export function measureScaleDown({ nodes, utilization, runs }: DrainOptions): ScaleDown {
  const times: number[] = [];
  const cpuTimes: number[] = [];
  let possible = 0;
  // The first run is a warm-up.
  for (let run = 0; run <= runs; run += 1) {
    const snapshot = aCluster(nodes, utilization);
    const started = performance.now();
    const cpu = process.cpuUsage();
    possible = snapshot.nodes.filter(
      ({ name }) => simulateDrain(snapshot, [name]).isPossible,
    ).length;
    const ms = performance.now() - started;
    const { user, system } = process.cpuUsage(cpu);
    if (run === 0) continue;
    times.push(ms);
    cpuTimes.push((user + system) / 1000);
  }
  return { nodes, utilization, ms: median(times), cpuMs: median(cpuTimes), possible };
}

/** Deployments of several kinds, whose pods are distributed over the nodes, and three DaemonSets. */
function aCluster(count: number, utilization: Utilization): Snapshot {
  const random = new Random(1);
  const used = Array.from({ length: count }, () => 0);
  const pods = Array.from({ length: count * PODS_PER_NODE }, (_, i) => {
    const node = i % count;
    const source = aPod(random, { index: i, node, isDaemon: Math.floor(i / count) % 10 === 0 });
    const pod = podFromKubernetes(source);
    if (!pod.ok) throw new Error(pod.problem);
    used[node] = (used[node] ?? 0) + pod.value.requests.cpuMilli;
    return pod.value;
  });
  const nodes = used.map((cpuMilli, i) => {
    const node = nodeFromKubernetes({
      metadata: {
        name: `node-${i}`,
        labels: { [HOSTNAME]: `node-${i}`, [ZONE]: zoneOf(i) },
      },
      status: {
        allocatable: {
          cpu: `${cpuMilli + FREE_CPU[utilization](random, i)}m`,
          memory: '64Gi',
          pods: '110',
        },
      },
    });
    if (!node.ok) throw new Error(node.problem);
    return node.value;
  });
  return Snapshot.of({ nodes, pods });
}

function zoneOf(index: number): string {
  return ZONES[index % ZONES.length] ?? 'a';
}

const KINDS: readonly ((app: string, node: number) => PodSpecSource)[] = [
  () => ({}),
  () => ({}),
  () => ({}),
  (_, node) => ({ nodeSelector: { [ZONE]: zoneOf(node) } }),
  () => ({ tolerations: [{ key: 'spot', operator: 'Exists' }] }),
  (app) => ({
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: HOSTNAME, labelSelector: { matchLabels: { app } } },
        ],
      },
    },
  }),
  (app) => ({
    topologySpreadConstraints: [
      {
        topologyKey: ZONE,
        maxSkew: 2,
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: { app } },
      },
    ],
  }),
];

// Every tenth pod of a node belongs to a DaemonSet. Replicas of a Deployment are on different nodes.
function aPod(
  random: Random,
  { index, node, isDaemon }: { index: number; node: number; isDaemon: boolean },
): PodSource {
  const deployment = Math.floor(index / REPLICAS);
  const app = isDaemon ? 'daemon' : `app-${deployment}`;
  const kind = isDaemon ? undefined : KINDS[deployment % KINDS.length];
  const requests = { cpu: `${random.int(1, 5) * 100}m`, memory: `${random.int(1, 8) * 128}Mi` };
  return {
    metadata: {
      name: `pod-${index}`,
      namespace: 'default',
      uid: `uid-${index}`,
      labels: { app },
      ownerReferences: [
        { kind: isDaemon ? 'DaemonSet' : 'ReplicaSet', name: app, uid: app, controller: true },
      ],
    },
    spec: {
      nodeName: `node-${node}`,
      containers: [{ name: 'main', resources: { requests } }],
      ...kind?.(app, node),
    },
    status: { phase: 'Running' },
  };
}
