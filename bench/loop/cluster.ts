// SPDX-License-Identifier: Apache-2.0
// A cluster as Kubernetes objects: nodes of one pool, pods of several kinds of Deployments, and three DaemonSets.
import type { PodSource, PodSpecSource } from '../../src/model/pod-source.ts';
import { Random } from '../../test/oracle/random.ts';

export const PODS_PER_NODE = 30;
const REPLICAS = 20;
const ZONES = [
  'pve0',
  'pve1',
  'pve2',
  'pve3',
  'pve4',
  'pve5',
  'pve6',
  'pve7',
  'pve8',
  'pve9',
] as const;
const ZONE = 'topology.kubernetes.io/zone';
const HOSTNAME = 'kubernetes.io/hostname';
const CPUS = 16;

/** `half`: every second node is underutilized. `full`: no node has space for another pod. */
export type Load = 'half' | 'full';

export interface ApiObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
}

export function zoneOf(index: number): string {
  return ZONES[index % ZONES.length] ?? '';
}

export const HOSTS = ZONES;

export function nodeObjects(count: number): readonly ApiObject[] {
  return Array.from({ length: count }, (_, index) => {
    const name = `node-${index}`;
    return {
      metadata: {
        name,
        uid: `uid-${name}`,
        resourceVersion: '1',
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: {
          [HOSTNAME]: name,
          [ZONE]: zoneOf(index),
          'autoscaler.proxmox/group': 'workers',
        },
      },
      spec: { providerID: `proxmox://bench/${index}` },
      status: {
        allocatable: { cpu: String(CPUS), memory: '64Gi', pods: '110' },
        capacity: { cpu: String(CPUS), memory: '64Gi', pods: '110' },
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
      },
    };
  });
}

const KINDS: readonly ((app: string) => PodSpecSource)[] = [
  () => ({}),
  () => ({}),
  () => ({}),
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
        maxSkew: 5,
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: { app } },
      },
    ],
  }),
];

/** The pods of all nodes. */
export function podObjects(nodes: number, load: Load): readonly (ApiObject & PodSource)[] {
  const random = new Random(1);
  return Array.from({ length: nodes * PODS_PER_NODE }, (_, index) => {
    const node = index % nodes;
    const isDaemon = Math.floor(index / nodes) % 10 === 0;
    const share = load === 'half' && node % 2 === 0 ? 0.4 : 1;
    const cpuMilli = Math.floor(((CPUS * 1_000) / PODS_PER_NODE) * share) - random.int(0, 3);
    return podObject({ index, cpuMilli, isDaemon, nodeName: `node-${node}` });
  });
}

interface PodOptions {
  readonly index: number;
  readonly cpuMilli: number;
  readonly isDaemon?: boolean;
  /** Absent: pending. */
  readonly nodeName?: string;
  readonly version?: number;
}

// Replicas of a Deployment are on different nodes.
export function podObject(options: PodOptions): ApiObject & PodSource {
  const { index, cpuMilli, isDaemon = false, nodeName, version = 1 } = options;
  const deployment = Math.floor(index / REPLICAS);
  const app = isDaemon ? `daemon-${index % 3}` : `app-${deployment}`;
  const kind = isDaemon ? undefined : KINDS[deployment % KINDS.length];
  const name = `pod-${index}`;
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      resourceVersion: String(version),
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { app },
      ownerReferences: [
        { kind: isDaemon ? 'DaemonSet' : 'ReplicaSet', name: app, uid: app, controller: true },
      ],
    },
    spec: {
      ...(nodeName !== undefined && { nodeName }),
      priority: 0,
      containers: [
        { name: 'main', resources: { requests: { cpu: `${cpuMilli}m`, memory: '512Mi' } } },
      ],
      ...kind?.(app),
    },
    status: { phase: nodeName === undefined ? 'Pending' : 'Running' },
  };
}
