// SPDX-License-Identifier: Apache-2.0
// Inputs for tests. A test sets only what matters to it.

import type { PoolConfig } from '../../config/types/index.ts';
import { parsePoolConfig } from '../../config/types/testing/sample-pool.ts';
import type { MachineId, MachineSize } from '../../model/machine.ts';
import type { Pod } from '../../model/pod.ts';
import { Snapshot } from '../../scheduling/index.ts';
import {
  aNode,
  aPod as aSchedulingPod,
  type NodeOptions,
  type PodOptions,
} from '../../scheduling/testing/builders.ts';
import {
  EMPTY_MEMORY,
  type HostCapacity,
  type ScalingHost,
  type ScalingInput,
  type ScalingMachine,
  type ScalingPool,
  type ScalingSettings,
} from '../index.ts';

export const MINUTE = 60_000;
export const NOW = Date.parse('2026-03-04T12:00:00Z');
export const GIB = 2 ** 30;

/** A pool as it is written in the config, without the keys that do not matter to scaling. */
export function aPoolConfig(file: Readonly<Record<string, unknown>> = {}): PoolConfig {
  const pool = parsePoolConfig({
    size: { cpu: 4, memory: '8Gi', disk: '40Gi' },
    regions: ['lab'],
    ...file,
  });
  return { ...pool, join: 'k3s', joins: true };
}

export function aScalingPool(
  file: Readonly<Record<string, unknown>> = {},
  over: Partial<ScalingPool> = {},
): ScalingPool {
  return { config: aPoolConfig(file), learned: {}, ...over };
}

export const AMPLE: HostCapacity = {
  cpus: 10_000,
  memoryBytes: 100_000 * GIB,
  diskBytes: 1_000_000 * GIB,
};

/** The same capacity for all these pools. */
export function aHost(
  name: string,
  pools: readonly string[] = ['workers'],
  capacity: Partial<HostCapacity> = {},
): ScalingHost {
  return {
    region: 'lab',
    name,
    pools: Object.fromEntries(pools.map((pool) => [pool, { ...AMPLE, ...capacity }])),
  };
}

export function aMachineId(number: number): MachineId {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- any text serves as an id
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}` as MachineId;
}

export interface MachineOptions extends Partial<Omit<ScalingMachine, 'id' | 'node'>> {
  readonly id?: number;
  /** Name of its Node. */
  readonly on?: string;
  readonly isNodeReady?: boolean;
  readonly annotations?: Readonly<Record<string, string>>;
}

const SIZE: MachineSize = { cpu: 4, memoryBytes: 8 * GIB, diskBytes: 40 * GIB };

/** A ready machine with a Node, unless the options say otherwise. */
export function aScalingMachine({
  id = 1,
  on,
  isNodeReady = true,
  annotations = {},
  ...over
}: MachineOptions = {}): ScalingMachine {
  const requestedAt = NOW - 60 * MINUTE;
  return {
    id: aMachineId(id),
    pool: 'workers',
    size: SIZE,
    phase: 'ready',
    requestedAt,
    readySince: requestedAt + MINUTE,
    isBeingDeleted: false,
    isDraining: false,
    placement: { region: 'lab', host: 'pve1', name: on ?? `workers-${id}` },
    ...(on !== undefined && {
      node: { name: on, isReady: isNodeReady, createdAt: requestedAt, annotations },
    }),
    ...over,
  };
}

export const SETTINGS: ScalingSettings = {
  poolChoice: 'least-waste',
  expendablePriority: -10,
  newPodDelayMs: 0,
  gpuLabel: 'autoscaler.proxmox/gpu',
  pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
  guards: {
    maxTotalUnreadyPercentage: 45,
    okTotalUnreadyCount: 3,
    breaker: { machines: 3, pauseMs: 30 * MINUTE },
  },
};

/** Pods of a ReplicaSet, unless the options say otherwise. */
export function aPod(options: PodOptions & Partial<Pick<Pod, 'createdAt' | 'eviction'>> = {}): Pod {
  const { createdAt, eviction, ...rest } = options;
  const pod = aSchedulingPod({ controller: 'ReplicaSet', cpu: '1', memory: '1Gi', ...rest });
  return {
    ...pod,
    createdAt: createdAt ?? NOW - 5 * MINUTE,
    ...(eviction !== undefined && { eviction }),
  };
}

export function pods(count: number, options: PodOptions = {}): readonly Pod[] {
  const name = options.name ?? 'web';
  return Array.from({ length: count }, (_, index) =>
    aPod({ ...options, name: `${name}-${index}` }),
  );
}

/** A node with the labels of its pool. */
export function aWorkerNode(name: string, options: NodeOptions = {}) {
  return aNode({
    name,
    zone: 'pve1',
    labels: { 'autoscaler.proxmox/group': 'workers' },
    ...options,
  });
}

export interface InputOptions
  extends Partial<Omit<ScalingInput, 'snapshot' | 'settings' | 'pending'>> {
  readonly nodes?: readonly ReturnType<typeof aNode>[];
  readonly pods?: readonly Pod[];
  readonly settings?: Partial<ScalingSettings>;
}

/** One pool, one ample host; `pods` without a node are pending. */
export function anInput({
  nodes = [],
  pods = [],
  settings,
  ...over
}: InputOptions = {}): ScalingInput {
  const pools = over.pools ?? [aScalingPool()];
  return {
    now: NOW,
    revision: 1,
    seed: 1,
    snapshot: Snapshot.of({ nodes, pods }),
    pending: pods.filter(({ nodeName }) => nodeName === ''),
    disruptionBudgets: [],
    unreadyNodes: [],
    machines: [],
    pools,
    hosts: [
      aHost(
        'pve1',
        pools.map(({ config }) => config.name),
      ),
    ],
    memory: EMPTY_MEMORY,
    ...over,
    settings: { ...SETTINGS, ...settings },
  };
}
