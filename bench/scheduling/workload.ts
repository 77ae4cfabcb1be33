// SPDX-License-Identifier: Apache-2.0
// Pods and machine sizes of Karpenter's own benchmark: generic pods, pods spread over zones and over nodes,
// pods with affinity within a zone, pods with anti-affinity on a node.

import type { PodSource } from '../../src/model/pod-source.ts';
import { Random } from '../../test/oracle/random.ts';

export interface Size {
  readonly name: string;
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly pods: number;
  readonly reservedCpuMilli: number;
  readonly reservedMemoryBytes: number;
  readonly price: number;
}

export interface Workload {
  readonly offerings: readonly { readonly zone: string; readonly capacityType: string }[];
  readonly sizes: readonly Size[];
  readonly pods: readonly PodSource[];
}

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const ZONE = 'topology.kubernetes.io/zone';
const HOSTNAME = 'kubernetes.io/hostname';
const CPU_MILLI = [100, 250, 500, 1000, 1500] as const;
const MEMORY_MIB = [100, 256, 512, 1024, 2048, 4096] as const;
const LETTERS = ['a', 'b', 'c', 'd', 'e', 'f', 'g'] as const;

type Kind = (random: Random) => {
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: NonNullable<PodSource['spec']>;
};

const myLabel = (random: Random) => ({ 'my-label': random.pick(LETTERS) });

const generic: Kind = (random) => ({ labels: myLabel(random), spec: {} });

const spreadOver =
  (topologyKey: string): Kind =>
  (random) => ({
    labels: myLabel(random),
    spec: {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: myLabel(random) },
        },
      ],
    },
  });

const together: Kind = (random) => {
  const labels = { 'my-affinity': random.pick(LETTERS) };
  const term = { labelSelector: { matchLabels: labels }, topologyKey: ZONE };
  return {
    labels,
    spec: {
      affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
    },
  };
};

const apart: Kind = () => {
  const labels = { app: 'nginx' };
  const term = { labelSelector: { matchLabels: labels }, topologyKey: HOSTNAME };
  return {
    labels,
    spec: {
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
    },
  };
};

const MIXED: readonly Kind[] = [generic, spreadOver(ZONE), spreadOver(HOSTNAME), together];

/** The pod kinds of each workload, in equal parts; the remainder is generic. */
export const KINDS = {
  diverse: [...MIXED, apart],
  'without anti-affinity': MIXED,
  'without constraints': [generic],
} as const satisfies Record<string, readonly Kind[]>;

export type WorkloadName = keyof typeof KINDS;

function newPod(random: Random, kind: Kind, index: number): PodSource {
  const { labels, spec } = kind(random);
  const requests = {
    cpu: `${random.pick(CPU_MILLI)}m`,
    memory: `${random.pick(MEMORY_MIB)}Mi`,
  };
  return {
    metadata: { name: `pod-${index}`, namespace: 'default', uid: `uid-${index}`, labels },
    spec: { ...spec, containers: [{ name: 'main', resources: { requests } }] },
    status: { phase: 'Pending' },
  };
}

function sizes(): Size[] {
  return Array.from({ length: 400 }, (_, index) => {
    const cpus = index + 1;
    return {
      name: `size-${cpus}`,
      cpuMilli: cpus * 1000,
      memoryBytes: 2 * cpus * GIB,
      pods: 10 * cpus,
      reservedCpuMilli: 100,
      reservedMemoryBytes: 10 * MIB,
      price: cpus * 0.1 + 2 * cpus * 0.1,
    };
  });
}

export function workload(name: WorkloadName, count: number): Workload {
  const random = new Random(42);
  const kinds: readonly Kind[] = KINDS[name];
  const each = Math.floor(count / kinds.length);
  const pods: PodSource[] = [];
  for (const kind of kinds)
    for (let i = 0; i < each; i += 1) pods.push(newPod(random, kind, pods.length));
  while (pods.length < count) pods.push(newPod(random, generic, pods.length));
  return {
    offerings: [
      { zone: 'test-zone-1', capacityType: 'spot' },
      { zone: 'test-zone-2', capacityType: 'spot' },
      { zone: 'test-zone-1', capacityType: 'on-demand' },
      { zone: 'test-zone-2', capacityType: 'on-demand' },
      { zone: 'test-zone-3', capacityType: 'on-demand' },
    ],
    sizes: sizes(),
    pods,
  };
}
