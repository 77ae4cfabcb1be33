// SPDX-License-Identifier: Apache-2.0
// Capacity and allocatable of a pool's nodes: as learned from nodes that joined, else computed from the machine size and
// the reserves in the config.

import type { PoolConfig } from '../config/types/index.ts';
import type { MachineSize } from '../model/machine.ts';
import type { LearnedAllocatable } from '../model/pool.ts';

type SizedNode = Pick<PoolConfig, 'name' | 'size' | 'capacity'>;

export interface NodeResources {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly ephemeralStorageBytes: number;
  readonly pods: number;
}

const MIB = 2 ** 20;

/**
 * A guest sees less memory than its VM has: kernel, page tables and firmware take their share first. A fixed part plus
 * 1/64 is what Linux takes on machines between 1 and 64 GiB, slightly rounded up.
 */
const GUEST_FIXED_BYTES = 96 * MIB;
const GUEST_SHARE = 64;
/** The rest is boot partitions and file system metadata. */
const DISK_SHARE = 0.95;

/** Key of what was learned about nodes of one machine size. */
export function sizeKey({ cpu, memoryBytes, diskBytes }: MachineSize): string {
  return `${cpu}x${memoryBytes}x${diskBytes}`;
}

/** What the kubelet will report as capacity. */
export function expectedCapacity({ size, capacity }: SizedNode): NodeResources {
  const guestBytes = GUEST_FIXED_BYTES + size.memoryBytes / GUEST_SHARE;
  return {
    cpuMilli: size.cpu * 1_000,
    memoryBytes: Math.max(0, Math.floor(size.memoryBytes - guestBytes)),
    ephemeralStorageBytes: Math.floor(size.diskBytes * DISK_SHARE),
    pods: capacity.maxPods,
  };
}

function computedAllocatable(pool: SizedNode): NodeResources {
  const total = expectedCapacity(pool);
  const { kubeReserved: kube, systemReserved: system, evictionThreshold } = pool.capacity;
  const eviction = (total.ephemeralStorageBytes * evictionThreshold.diskPercentage) / 100;
  const subtract = (amount: number, ...reserved: readonly number[]) =>
    Math.max(0, Math.floor(reserved.reduce((rest, one) => rest - one, amount)));
  return {
    cpuMilli: subtract(total.cpuMilli, kube.cpuMilli, system.cpuMilli),
    memoryBytes: subtract(
      total.memoryBytes,
      kube.memoryBytes,
      system.memoryBytes,
      evictionThreshold.memoryBytes,
    ),
    ephemeralStorageBytes: subtract(
      total.ephemeralStorageBytes,
      kube.diskBytes,
      system.diskBytes,
      eviction,
    ),
    pods: total.pods,
  };
}

export interface ReservedModel {
  readonly fixed: Omit<NodeResources, 'pods'>;
  readonly share: { readonly memoryBytes: number; readonly ephemeralStorageBytes: number };
}

/**
 * The part of a machine of any size that pods cannot request: a fixed amount, and a share of the size. Learned values of
 * joined nodes add what the computed ones lack. Rounded up: a machine never offers less than this model promises.
 */
export function reservedModel(
  pool: SizedNode,
  learned: readonly { readonly size: MachineSize; readonly allocatable: LearnedAllocatable }[],
): ReservedModel {
  const { kubeReserved: kube, systemReserved: system, evictionThreshold } = pool.capacity;
  const missing = (name: keyof ReservedModel['fixed']) =>
    Math.max(
      0,
      ...learned.map(({ size, allocatable }) => {
        const sized = { ...pool, size };
        return computedAllocatable(sized)[name] - expectedAllocatable(sized, allocatable)[name];
      }),
    );
  return {
    fixed: {
      cpuMilli: kube.cpuMilli + system.cpuMilli + missing('cpuMilli'),
      memoryBytes:
        GUEST_FIXED_BYTES +
        kube.memoryBytes +
        system.memoryBytes +
        evictionThreshold.memoryBytes +
        missing('memoryBytes') +
        ROUNDING_BYTES,
      ephemeralStorageBytes:
        kube.diskBytes + system.diskBytes + missing('ephemeralStorageBytes') + ROUNDING_BYTES,
    },
    share: {
      memoryBytes: 1 / GUEST_SHARE,
      ephemeralStorageBytes: 1 - DISK_SHARE * (1 - evictionThreshold.diskPercentage / 100),
    },
  };
}

/** Amounts of memory are reported in KiB. */
const ROUNDING_BYTES = 1_024;

/** The size that `sizeKey` made the key from. */
export function sizeOfKey(key: string): MachineSize | undefined {
  const [cpu, memoryBytes, diskBytes] = key.split('x').map(Number);
  if (cpu === undefined || memoryBytes === undefined || diskBytes === undefined) return undefined;
  return { cpu, memoryBytes, diskBytes };
}

/**
 * Learned values, where known: a kubelet that has just started reports no disk until it has measured it, and a pod that
 * requests disk would never be scheduled to the pool.
 */
export function expectedAllocatable(
  pool: SizedNode,
  learned: LearnedAllocatable | undefined,
): NodeResources {
  const computed = computedAllocatable(pool);
  if (learned === undefined) return computed;
  return {
    cpuMilli: learned.cpuMilli || computed.cpuMilli,
    memoryBytes: learned.memoryBytes || computed.memoryBytes,
    ephemeralStorageBytes: learned.ephemeralStorageBytes || computed.ephemeralStorageBytes,
    pods: learned.pods || computed.pods,
  };
}

/** Relative deviation of the config from learned values above which a warning is logged. */
const TOLERANCE = 0.05;

/** A warning when joined nodes offer other resources than the config promises; undefined within the tolerance. */
export function describeDifference(
  pool: SizedNode,
  learned: LearnedAllocatable,
): string | undefined {
  const computed = computedAllocatable(pool);
  const actual = expectedAllocatable(pool, learned);
  const different = (['cpuMilli', 'memoryBytes', 'ephemeralStorageBytes', 'pods'] as const).filter(
    (name) => Math.abs(actual[name] - computed[name]) > TOLERANCE * Math.max(computed[name], 1),
  );
  if (different.length === 0) return undefined;
  const values = different.map((name) => `${name} ${actual[name]} instead of ${computed[name]}`);
  return `nodes of pool ${pool.name} offer ${values.join(', ')}; the actual values are used; adjust pools[].capacity to match`;
}
