// SPDX-License-Identifier: Apache-2.0
// Splits the hosts into candidates and refusals. This does not change while machines are placed one after the
// other; only allocations and storage space do.
import type { Host } from '../../model/host.ts';
import { multiplyExact } from './amounts.ts';
import type { HostRefusal } from './decision.ts';
import { type DiskOption, findDiskOptions } from './disk-options.ts';
import type { RegionFacts } from './facts.ts';
import { findUnknownHosts, hostFilterProblem } from './host-filter.ts';
import { PlannedAllocations } from './planned-allocations.ts';
import type { PlacementRequest } from './request.ts';
import { storageProblem } from './storage-problem.ts';
import { StorageSpace } from './storage-space.ts';

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
  const refusals = [
    ...tooFewCpus(host, request),
    ...seedStorageProblem(host, request),
    ...(options.length === 0 ? problems : []),
  ];
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

// Proxmox creates such a VM but never starts it.
function tooFewCpus(host: Host, { size }: PlacementRequest): readonly HostRefusal[] {
  if (size.cpu <= host.cpus) return [];
  return [
    {
      host: host.name,
      reason: 'TooFewCpus',
      message: `host ${host.name} has ${host.cpus} CPUs and cannot start a VM with ${size.cpu} vCPUs`,
      numbers: { needed: size.cpu, hostCpus: host.cpus },
    },
  ];
}

function seedStorageProblem(host: Host, { seedStorage }: PlacementRequest): readonly HostRefusal[] {
  if (seedStorage === undefined) return [];
  const problem = storageProblem(host, seedStorage, 'iso');
  return problem === undefined ? [] : [problem];
}
