// SPDX-License-Identifier: Apache-2.0
// What pods may use of a machine: what joined nodes of the pool said, or else what is left after the reserves.
import type { LearnedAllocatable } from '../../model/pool.ts';
import type { GroupSettings } from '../settings.ts';

export interface Offer {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly ephemeralStorageBytes: number;
  readonly pods: number;
}

const MIB = 2 ** 20;

/**
 * A guest never has all the memory its VM has: kernel, page tables and firmware take their part before the kubelet
 * looks. A fixed part plus 1/64 is what Linux takes of machines between 1 and 64 GiB, a little rounded up.
 */
const GUEST_FIXED_BYTES = 96 * MIB;
const GUEST_SHARE = 64;
/** Boot partitions and the file system's own tables. */
const DISK_SHARE = 0.95;

/** What the kubelet will report as capacity. */
export function capacityOf({ size, capacity }: GroupSettings): Offer {
  const guestBytes = GUEST_FIXED_BYTES + size.memoryBytes / GUEST_SHARE;
  return {
    cpuMilli: size.cpu * 1_000,
    memoryBytes: Math.max(0, Math.floor(size.memoryBytes - guestBytes)),
    ephemeralStorageBytes: Math.floor(size.diskBytes * DISK_SHARE),
    pods: capacity.maxPods,
  };
}

function computedAllocatable(group: GroupSettings): Offer {
  const whole = capacityOf(group);
  const { kubeReserved: kube, systemReserved: system, evictionThreshold } = group.capacity;
  const eviction = (whole.ephemeralStorageBytes * evictionThreshold.diskPercentage) / 100;
  const left = (all: number, ...taken: readonly number[]) =>
    Math.max(0, Math.floor(taken.reduce((rest, one) => rest - one, all)));
  return {
    cpuMilli: left(whole.cpuMilli, kube.cpuMilli, system.cpuMilli),
    memoryBytes: left(
      whole.memoryBytes,
      kube.memoryBytes,
      system.memoryBytes,
      evictionThreshold.memoryBytes,
    ),
    ephemeralStorageBytes: left(
      whole.ephemeralStorageBytes,
      kube.diskBytes,
      system.diskBytes,
      eviction,
    ),
    pods: whole.pods,
  };
}

/**
 * What joined nodes said, as far as they knew: a kubelet that has just come up reports no disk until it has measured it,
 * and nothing that asks for disk would ever be planned onto the pool.
 */
export function offerOf(group: GroupSettings, learned: LearnedAllocatable | undefined): Offer {
  const computed = computedAllocatable(group);
  if (learned === undefined) return computed;
  return {
    cpuMilli: learned.cpuMilli || computed.cpuMilli,
    memoryBytes: learned.memoryBytes || computed.memoryBytes,
    ephemeralStorageBytes: learned.ephemeralStorageBytes || computed.ephemeralStorageBytes,
    pods: learned.pods || computed.pods,
  };
}

/** Key of what was learned about a size. */
export function sizeKey({ size }: Pick<GroupSettings, 'size'>): string {
  return `${size.cpu}x${size.memoryBytes}x${size.diskBytes}`;
}

/** How far the reserves may be from reality before somebody is told: pods would be packed wrongly. */
const TOLERANCE = 0.05;

/** One sentence when joined nodes offer something else than the config promises. */
export function differenceOf(
  group: GroupSettings,
  learned: LearnedAllocatable,
): string | undefined {
  const computed = computedAllocatable(group);
  const offer = offerOf(group, learned);
  const off = (['cpuMilli', 'memoryBytes', 'ephemeralStorageBytes', 'pods'] as const).filter(
    (name) => Math.abs(offer[name] - computed[name]) > TOLERANCE * Math.max(computed[name], 1),
  );
  if (off.length === 0) return undefined;
  const words = off.map((name) => `${name} ${offer[name]} instead of ${computed[name]}`);
  return `nodes of pool ${group.name} offer ${words.join(', ')}; what they offer is used, set pools[].capacity alike`;
}
