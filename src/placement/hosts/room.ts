// SPDX-License-Identifier: Apache-2.0
// What a candidate has left: an offer if the machine fits, otherwise everything that it lacks, with numbers.
import { bytesFree, bytesNeeded, counted, timesInto } from './amounts.ts';
import { byName, type Refusal } from './decision.ts';
import type { HostEntry } from './host-books.ts';
import type { Candidate, Survey } from './survey.ts';
import type { Way } from './ways.ts';

export interface Offer {
  readonly host: string;
  readonly way: Way;
  /** Left after the machine was placed. */
  readonly memoryFreeBytes: number;
  readonly cpusFree: number;
  readonly diskFreeBytes: number;
  /** Before it. */
  readonly vms: number;
  readonly poolMachines: number;
}

interface Room {
  readonly entry: HostEntry;
  readonly memoryFreeBytes: number;
  readonly cpusFree: number;
  readonly way: Way;
  readonly diskFreeBytes: number;
}

export function offerOf(candidate: Candidate, survey: Survey): Offer | undefined {
  const { size } = survey.request;
  const { entry, way, memoryFreeBytes, cpusFree, diskFreeBytes } = roomOf(candidate, survey);
  const fits =
    size.memoryBytes <= memoryFreeBytes && size.cpu <= cpusFree && size.diskBytes <= diskFreeBytes;
  if (!fits) return undefined;
  return {
    host: candidate.host.name,
    way,
    memoryFreeBytes: memoryFreeBytes - size.memoryBytes,
    cpusFree: cpusFree - size.cpu,
    diskFreeBytes: diskFreeBytes - size.diskBytes,
    vms: entry.vms,
    poolMachines: entry.poolMachines,
  };
}

/** How many machines of the request fit onto this host alone. */
export function slotsOf(candidate: Candidate, survey: Survey): number {
  const { size } = survey.request;
  const { memoryFreeBytes, cpusFree } = roomOf(candidate, survey);
  const storages = new Set(candidate.ways.map(({ storage }) => storage));
  const onDisk = [...storages]
    .map((storage) => survey.storageBooks.room(candidate.host.name, storage))
    .reduce((sum, room) => sum + timesInto(room, size.diskBytes), 0);
  return Math.min(
    timesInto(memoryFreeBytes, size.memoryBytes),
    timesInto(cpusFree, size.cpu),
    onDisk,
  );
}

/** Of a candidate that makes no offer: at least one. */
export function shortfalls(candidate: Candidate, survey: Survey): readonly Refusal[] {
  const room = roomOf(candidate, survey);
  return [
    ...memoryShortfall(candidate, survey, room),
    ...cpuShortfall(candidate, survey, room),
    ...diskShortfall(candidate, survey, room),
  ];
}

function roomOf({ host, ways, cpuLimit, memoryLimitBytes }: Candidate, survey: Survey): Room {
  const entry = survey.hostBooks.entry(host.name);
  const rooms = ways.map((way) => ({
    way,
    diskFreeBytes: survey.storageBooks.room(host.name, way.storage),
  }));
  const best = rooms.reduce((left, right) => (isRoomier(right, left) ? right : left));
  return {
    entry,
    memoryFreeBytes: memoryLimitBytes - entry.memoryBytes,
    cpusFree: cpuLimit - entry.cpus,
    ...best,
  };
}

type DiskRoom = Pick<Room, 'way' | 'diskFreeBytes'>;

/** Ways come with the nearest template first: of two onto one storage, the earlier stays. */
function isRoomier(one: DiskRoom, other: DiskRoom): boolean {
  if (one.diskFreeBytes !== other.diskFreeBytes) return one.diskFreeBytes > other.diskFreeBytes;
  return byName(one.way.storage, other.way.storage) < 0;
}

function memoryShortfall(candidate: Candidate, survey: Survey, room: Room): readonly Refusal[] {
  const { host, memoryLimitBytes } = candidate;
  const { size, placement } = survey.request;
  if (size.memoryBytes <= room.memoryFreeBytes) return [];
  const { memoryOvercommit, memoryReserveBytes } = placement;
  const limit = `${bytesFree(host.memoryBytes)} × ${memoryOvercommit} − ${bytesNeeded(memoryReserveBytes)} reserve`;
  return [
    {
      host: host.name,
      reason: 'NotEnoughMemory',
      sentence:
        `host ${host.name}: needs ${bytesNeeded(size.memoryBytes)} of memory, ${bytesFree(room.memoryFreeBytes)} free ` +
        `of ${bytesFree(memoryLimitBytes)} (${limit}); ${bytesNeeded(room.entry.memoryBytes)} given to ${counted(room.entry.vms, 'VM')}`,
      numbers: {
        neededBytes: size.memoryBytes,
        freeBytes: room.memoryFreeBytes,
        limitBytes: memoryLimitBytes,
        allocatedBytes: room.entry.memoryBytes,
        hostBytes: host.memoryBytes,
        reserveBytes: memoryReserveBytes,
        overcommit: memoryOvercommit,
      },
    },
  ];
}

function cpuShortfall(candidate: Candidate, survey: Survey, room: Room): readonly Refusal[] {
  const { host, cpuLimit } = candidate;
  const { size, placement } = survey.request;
  if (size.cpu <= room.cpusFree) return [];
  const free = Math.max(room.cpusFree, 0);
  const limit = `${host.cpus} × ${placement.cpuOvercommit}`;
  return [
    {
      host: host.name,
      reason: 'NotEnoughCpu',
      sentence:
        `host ${host.name}: needs ${counted(size.cpu, 'vCPU')}, ${free} free of ${cpuLimit} (${limit}); ` +
        `${room.entry.cpus} given to ${counted(room.entry.vms, 'VM')}`,
      numbers: {
        needed: size.cpu,
        free: room.cpusFree,
        limit: cpuLimit,
        allocated: room.entry.cpus,
        hostCpus: host.cpus,
        overcommit: placement.cpuOvercommit,
      },
    },
  ];
}

function diskShortfall({ host }: Candidate, survey: Survey, room: Room): readonly Refusal[] {
  const { diskBytes } = survey.request.size;
  if (diskBytes <= room.diskFreeBytes) return [];
  const { storage } = room.way;
  const pendingBytes = survey.storageBooks.pending(host.name, storage);
  return [
    {
      host: host.name,
      reason: 'NotEnoughDisk',
      sentence:
        `host ${host.name}: needs ${bytesNeeded(diskBytes)} on storage ${storage}, ${bytesFree(room.diskFreeBytes)} free there ` +
        `after ${bytesNeeded(pendingBytes)} for machines in the making`,
      numbers: { neededBytes: diskBytes, freeBytes: room.diskFreeBytes, pendingBytes, storage },
    },
  ];
}
