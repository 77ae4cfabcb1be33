// SPDX-License-Identifier: Apache-2.0
// The headroom of a candidate host: an offer if the machine fits, otherwise every shortfall with its numbers.

import { formatCount } from '../../model/format-text.ts';
import { compareNames, type HostRefusal } from './decision.ts';
import type { DiskOption } from './disk-options.ts';
import { countFits, formatFreeBytes, formatNeededBytes } from './facts.ts';
import type { CandidateHost, PlacementState, PlannedAllocation } from './placement-state.ts';

export interface HostOffer {
  readonly host: string;
  readonly diskOption: DiskOption;
  /** After placing the machine. */
  readonly memoryFreeBytes: number;
  readonly cpusFree: number;
  readonly diskFreeBytes: number;
  /** Before placing the machine. */
  readonly vms: number;
  readonly poolMachines: number;
}

interface Headroom {
  readonly allocation: PlannedAllocation;
  readonly memoryFreeBytes: number;
  readonly cpusFree: number;
  readonly diskOption: DiskOption;
  readonly diskFreeBytes: number;
}

export function makeOffer(candidate: CandidateHost, state: PlacementState): HostOffer | undefined {
  const { size } = state.request;
  const { allocation, diskOption, memoryFreeBytes, cpusFree, diskFreeBytes } = headroomOf(
    candidate,
    state,
  );
  const fits =
    size.memoryBytes <= memoryFreeBytes && size.cpu <= cpusFree && size.diskBytes <= diskFreeBytes;
  if (!fits) return undefined;
  return {
    host: candidate.host.name,
    diskOption,
    memoryFreeBytes: memoryFreeBytes - size.memoryBytes,
    cpusFree: cpusFree - size.cpu,
    diskFreeBytes: diskFreeBytes - size.diskBytes,
    vms: allocation.vms,
    poolMachines: allocation.poolMachines,
  };
}

/** How many machines of the request fit on this host alone. */
export function countHostSlots(candidate: CandidateHost, state: PlacementState): number {
  const { size } = state.request;
  const { memoryFreeBytes, cpusFree } = headroomOf(candidate, state);
  const storages = new Set(candidate.diskOptions.map(({ storage }) => storage));
  const onDisk = [...storages]
    .map((storage) => state.storageSpace.freeBytes(candidate.host.name, storage))
    .reduce((sum, headroom) => sum + countFits(headroom, size.diskBytes), 0);
  return Math.min(
    countFits(memoryFreeBytes, size.memoryBytes),
    countFits(cpusFree, size.cpu),
    onDisk,
  );
}

/** At least one refusal for a candidate that makes no offer. */
export function shortfallRefusals(
  candidate: CandidateHost,
  state: PlacementState,
): readonly HostRefusal[] {
  const headroom = headroomOf(candidate, state);
  return [
    ...memoryShortfall(candidate, state, headroom),
    ...cpuShortfall(candidate, state, headroom),
    ...diskShortfall(candidate, state, headroom),
  ];
}

export function headroomOf(
  { host, diskOptions, cpuLimit, memoryLimitBytes }: CandidateHost,
  state: PlacementState,
): Headroom {
  const allocation = state.allocations.allocationOf(host.name);
  const diskHeadrooms = diskOptions.map((diskOption) => ({
    diskOption,
    diskFreeBytes: state.storageSpace.freeBytes(host.name, diskOption.storage),
  }));
  const best = diskHeadrooms.reduce((left, right) => (hasMoreSpace(right, left) ? right : left));
  return {
    allocation,
    memoryFreeBytes: memoryLimitBytes - allocation.memoryBytes,
    cpusFree: cpuLimit - allocation.cpus,
    ...best,
  };
}

type DiskHeadroom = Pick<Headroom, 'diskOption' | 'diskFreeBytes'>;

/** Options are sorted by nearest template: of two for the same storage, the first is kept. */
function hasMoreSpace(one: DiskHeadroom, other: DiskHeadroom): boolean {
  if (one.diskFreeBytes !== other.diskFreeBytes) return one.diskFreeBytes > other.diskFreeBytes;
  return compareNames(one.diskOption.storage, other.diskOption.storage) < 0;
}

function memoryShortfall(
  candidate: CandidateHost,
  state: PlacementState,
  headroom: Headroom,
): readonly HostRefusal[] {
  const { host, memoryLimitBytes } = candidate;
  const { size, placement } = state.request;
  if (size.memoryBytes <= headroom.memoryFreeBytes) return [];
  const { memoryOvercommit, memoryReserveBytes } = placement;
  const limit = `${formatFreeBytes(host.memoryBytes)} × ${memoryOvercommit} − ${formatNeededBytes(memoryReserveBytes)} reserve`;
  return [
    {
      host: host.name,
      reason: 'NotEnoughMemory',
      message:
        `host ${host.name}: needs ${formatNeededBytes(size.memoryBytes)} of memory, ${formatFreeBytes(headroom.memoryFreeBytes)} free ` +
        `of ${formatFreeBytes(memoryLimitBytes)} (${limit}); ${formatNeededBytes(headroom.allocation.memoryBytes)} allocated to ${formatCount(headroom.allocation.vms, 'VM')}`,
      numbers: {
        neededBytes: size.memoryBytes,
        freeBytes: headroom.memoryFreeBytes,
        limitBytes: memoryLimitBytes,
        allocatedBytes: headroom.allocation.memoryBytes,
        hostBytes: host.memoryBytes,
        reserveBytes: memoryReserveBytes,
        overcommit: memoryOvercommit,
      },
    },
  ];
}

function cpuShortfall(
  candidate: CandidateHost,
  state: PlacementState,
  headroom: Headroom,
): readonly HostRefusal[] {
  const { host, cpuLimit } = candidate;
  const { size, placement } = state.request;
  if (size.cpu <= headroom.cpusFree) return [];
  const free = Math.max(headroom.cpusFree, 0);
  const limit = `${host.cpus} × ${placement.cpuOvercommit}`;
  return [
    {
      host: host.name,
      reason: 'NotEnoughCpu',
      message:
        `host ${host.name}: needs ${formatCount(size.cpu, 'vCPU')}, ${free} free of ${cpuLimit} (${limit}); ` +
        `${headroom.allocation.cpus} allocated to ${formatCount(headroom.allocation.vms, 'VM')}`,
      numbers: {
        needed: size.cpu,
        free: headroom.cpusFree,
        limit: cpuLimit,
        allocated: headroom.allocation.cpus,
        hostCpus: host.cpus,
        overcommit: placement.cpuOvercommit,
      },
    },
  ];
}

function diskShortfall(
  { host }: CandidateHost,
  state: PlacementState,
  headroom: Headroom,
): readonly HostRefusal[] {
  const { diskBytes } = state.request.size;
  if (diskBytes <= headroom.diskFreeBytes) return [];
  const { storage } = headroom.diskOption;
  const pendingBytes = state.storageSpace.pendingBytes(host.name, storage);
  return [
    {
      host: host.name,
      reason: 'NotEnoughDisk',
      message:
        `host ${host.name}: needs ${formatNeededBytes(diskBytes)} on storage ${storage}, ${formatFreeBytes(headroom.diskFreeBytes)} free there ` +
        `after ${formatNeededBytes(pendingBytes)} reserved for machines being created`,
      numbers: { neededBytes: diskBytes, freeBytes: headroom.diskFreeBytes, pendingBytes, storage },
    },
  ];
}
