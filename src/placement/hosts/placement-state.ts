// SPDX-License-Identifier: Apache-2.0
// Splits the hosts into candidates and refusals. This does not change while machines are placed one after the
// other; only allocations and storage space do.
import type { Host, HostStorage } from '../../model/host.ts';
import type { HostFilter, HostRefusal, PlacementRequest, RefusalReason } from './decision.ts';
import {
  type DiskOption,
  findDiskOptions,
  privilegeProblem,
  storageProblem,
} from './disk-options.ts';
import { multiplyExact, type RegionFacts } from './facts.ts';

import { HostAllocations } from './host-allocations.ts';

/** A host with everything the machine needs, except possibly free capacity. */
export interface CandidateHost {
  readonly host: Host;
  readonly diskOptions: readonly DiskOption[];
  /** Total vCPUs and memory that may be allocated. */
  readonly cpuLimit: number;
  readonly memoryLimitBytes: number;
  readonly isBusy: boolean;
}

export interface PlacementState {
  readonly request: PlacementRequest;
  readonly candidates: readonly CandidateHost[];
  readonly refusals: readonly HostRefusal[];
  readonly allocations: PlannedAllocations;
  readonly storageSpace: StorageSpace;
}

export function buildPlacementState(request: PlacementRequest, facts: RegionFacts): PlacementState {
  const checked = facts.hosts.map((host) => checkHost(host, request, facts));
  return {
    request,
    candidates: checked.flatMap(({ candidate }) => candidate ?? []),
    refusals: [
      ...checked.flatMap(({ refusals }) => refusals),
      ...findUnknownHosts(request, facts.hosts),
    ],
    allocations: new PlannedAllocations(request, facts),
    storageSpace: new StorageSpace(facts, request.thinStorages ?? []),
  };
}

interface CheckedHost {
  readonly candidate?: CandidateHost;
  readonly refusals: readonly HostRefusal[];
}

function checkHost(host: Host, request: PlacementRequest, facts: RegionFacts): CheckedHost {
  const filtered = hostFilterProblem(host, request);
  if (filtered !== undefined) return { refusals: [filtered] };
  const { options, problems } = findDiskOptions(host, request, facts.hosts);
  const problemsOfHost = [
    ...tooFewCpus(host, request),
    ...seedStorageProblem(host, request),
    ...(options.length === 0 ? problems : []),
  ];
  const refusals = problemsOfHost.length > 0 ? problemsOfHost : unreadStorages(host, facts);
  return refusals.length > 0
    ? { refusals }
    : { refusals, candidate: candidateOf(host, options, { request, facts }) };
}

function candidateOf(
  host: Host,
  diskOptions: readonly DiskOption[],
  { request, facts }: { readonly request: PlacementRequest; readonly facts: RegionFacts },
): CandidateHost {
  const { cpuOvercommit, memoryOvercommit, memoryReserveBytes } = request.placement;
  return {
    host,
    diskOptions,
    cpuLimit: multiplyExact(host.cpus, cpuOvercommit),
    memoryLimitBytes: multiplyExact(host.memoryBytes, memoryOvercommit) - memoryReserveBytes,
    isBusy: facts.busyHosts?.includes(host.name) ?? false,
  };
}

/** Reported only for a host that has all its storages. */
function unreadStorages({ name }: Host, { unreadHosts }: RegionFacts): readonly HostRefusal[] {
  if (unreadHosts?.includes(name) !== true) return [];
  return [refusal(name, 'StoragesUnread', 'does not report the free space of its storages')];
}

// Proxmox creates such a VM but never starts it.
function tooFewCpus(host: Host, { size }: PlacementRequest): readonly HostRefusal[] {
  if (size.cpu <= host.cpus) return [];
  const hidden = privilegeProblem(host, 'shows no CPUs and no memory', {
    privilege: 'Sys.Audit',
    path: `/nodes/${host.name}`,
  });
  if (hidden !== undefined && host.cpus === 0) return [hidden];
  return [
    {
      host: host.name,
      reason: 'TooFewCpus',
      message:
        host.cpus === 0
          ? `host ${host.name} reports no CPUs and no memory`
          : `host ${host.name} has ${host.cpus} CPUs and cannot start a VM with ${size.cpu} vCPUs`,
      numbers: { needed: size.cpu, hostCpus: host.cpus },
    },
  ];
}

function seedStorageProblem(host: Host, { seedStorage }: PlacementRequest): readonly HostRefusal[] {
  if (seedStorage === undefined) return [];
  const problem = storageProblem(host, seedStorage, 'iso');
  return problem === undefined ? [] : [problem];
}

// Whether the configuration and the host's state allow placing machines on it.

/** Returns undefined if the host is allowed. */
function hostFilterProblem(host: Host, request: PlacementRequest): HostRefusal | undefined {
  for (const [owner, { allow, deny }] of hostFilters(request)) {
    if (deny.includes(host.name)) {
      return refusal(host.name, 'HostDenied', `is in hosts.deny of ${owner}`);
    }
    if (allow.length > 0 && !allow.includes(host.name)) {
      return refusal(host.name, 'HostNotAllowed', `is not in hosts.allow of ${owner}`);
    }
  }
  return host.online ? undefined : refusal(host.name, 'HostOffline', 'is offline');
}

/** Hosts in `allow` that do not exist. Without this check a mistyped name would read as "no host is allowed". */
function findUnknownHosts(
  request: PlacementRequest,
  hosts: readonly Host[],
): readonly HostRefusal[] {
  const known = new Set(hosts.map(({ name }) => name));
  const missing = hostFilters(request).flatMap(([owner, { allow }]) =>
    allow.filter((name) => !known.has(name)).map((name) => [name, owner] as const),
  );
  const byHostName = new Map(missing.toReversed());
  return [...byHostName].map(([name, owner]) =>
    refusal(name, 'HostUnknown', `is in hosts.allow of ${owner}, but Proxmox has no such host`),
  );
}

function hostFilters({ pool, regionHosts, placement }: PlacementRequest) {
  const all: readonly (readonly [whose: string, filter: HostFilter])[] = [
    ['the region', regionHosts],
    [`pool ${pool}`, placement.hosts],
  ];
  return all;
}

function refusal(host: string, reason: RefusalReason, text: string): HostRefusal {
  return { host, reason, message: `host ${host} ${text}`, numbers: {} };
}

// What is allocated on each host by configuration, plus the machines planned in this run. Current utilization
// is ignored: an idle VM may become busy.

export interface PlannedAllocation {
  readonly cpus: number;
  readonly memoryBytes: number;
  /** All VMs, including stopped and unmanaged ones, except templates. */
  readonly vms: number;
  /** Machines of the requesting pool. */
  readonly poolMachines: number;
}

class PlannedAllocations {
  readonly #request: PlacementRequest;
  readonly #current: NonNullable<RegionFacts['allocations']>;
  readonly #planned = new Map<string, PlannedAllocation>();

  constructor(request: PlacementRequest, facts: RegionFacts) {
    this.#request = request;
    this.#current = facts.allocations ?? buildAllocations(facts);
  }

  allocationOf(host: string): PlannedAllocation {
    const planned = this.#planned.get(host) ?? this.#readCurrent(host);
    this.#planned.set(host, planned);
    return planned;
  }

  /** Adds one machine of the request. */
  addMachine(host: string): void {
    const { cpu, memoryBytes } = this.#request.size;
    const known = this.allocationOf(host);
    this.#planned.set(host, {
      cpus: known.cpus + cpu,
      memoryBytes: known.memoryBytes + memoryBytes,
      vms: known.vms + 1,
      poolMachines: known.poolMachines + 1,
    });
  }

  #readCurrent(host: string): PlannedAllocation {
    const allocation = this.#current.allocationOf(host);
    if (allocation === undefined) return { cpus: 0, memoryBytes: 0, vms: 0, poolMachines: 0 };
    const isLess = this.#request.countsStopped === false;
    return {
      cpus: allocation.cpus - (isLess ? allocation.stoppedCpus : 0),
      memoryBytes: allocation.memoryBytes - (isLess ? allocation.stoppedMemoryBytes : 0),
      vms: allocation.vms,
      poolMachines: allocation.pools.get(this.#request.pool) ?? 0,
    };
  }
}

function buildAllocations({ vms, reservations }: RegionFacts): HostAllocations {
  const allocations = new HostAllocations();
  for (const [index, one] of reservations.entries()) allocations.setReservation(String(index), one);
  allocations.setVms(vms);
  return allocations;
}

// Free space of a region's storages. A shared storage is counted once, whichever host reports it.

interface StorageReading {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

class StorageSpace {
  readonly #shared: ReadonlySet<string>;
  readonly #thin: ReadonlySet<string>;
  readonly #readings = new Map<string, StorageReading>();
  readonly #pending = new Map<string, number>();

  constructor({ hosts, reservations }: RegionFacts, thin: readonly string[]) {
    const all = hosts.flatMap(({ storages }) => storages);
    this.#shared = new Set(all.filter(({ shared }) => shared).map(({ name }) => name));
    this.#thin = new Set(thin);
    for (const host of hosts) this.#readAll(host);
    for (const { host, storage, pendingDiskBytes } of reservations) {
      this.reserve(host, storage, pendingDiskBytes);
    }
  }

  /** Negative if more is reserved than free. */
  freeBytes(host: string, storage: string): number {
    const key = this.#keyOf(host, storage);
    const reading = this.#readings.get(key);
    if (reading === undefined) return 0;
    return this.#limit(storage, reading) - this.pendingBytes(host, storage);
  }

  pendingBytes(host: string, storage: string): number {
    return this.#pending.get(this.#keyOf(host, storage)) ?? 0;
  }

  /** Whether all hosts allocate from the same space. */
  isShared(storage: string): boolean {
    return this.#shared.has(storage);
  }

  reserve(host: string, storage: string, bytes: number): void {
    this.#pending.set(this.#keyOf(host, storage), this.pendingBytes(host, storage) + bytes);
  }

  // A full thin storage stops every VM on it, so its total size no longer counts as available.
  #limit(storage: string, { freeBytes, totalBytes }: StorageReading): number {
    return this.#thin.has(storage) && freeBytes > 0 ? totalBytes : freeBytes;
  }

  #keyOf(host: string, storage: string): string {
    return this.#shared.has(storage) ? storage : `${host}/${storage}`;
  }

  #readAll({ name, online, storages }: Host): void {
    for (const storage of storages) if (online && storage.active) this.#read(name, storage);
  }

  // Hosts report a shared storage at different times; the lowest value is safe.
  #read(host: string, { name, freeBytes, totalBytes }: HostStorage): void {
    const key = this.#keyOf(host, name);
    const known = this.#readings.get(key) ?? { freeBytes, totalBytes };
    this.#readings.set(key, {
      freeBytes: Math.min(known.freeBytes, freeBytes),
      totalBytes: Math.min(known.totalBytes, totalBytes),
    });
  }
}
