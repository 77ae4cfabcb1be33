// SPDX-License-Identifier: Apache-2.0
// Sorts the hosts into those that could carry the machine if they had room, and those that could not.
// What is found here does not change while machines are placed one after the other; only the books do.
import type { Host } from '../../model/host.ts';
import { timesFactor } from './amounts.ts';
import type { Refusal } from './decision.ts';
import type { RegionFacts } from './facts.ts';
import { gateProblem, unknownHosts } from './gate.ts';
import { HostBooks } from './host-books.ts';
import type { PlacementRequest } from './request.ts';
import { StorageBooks } from './storage-books.ts';
import { storageProblem } from './storage-problem.ts';
import { type Way, waysOnto } from './ways.ts';

/** A host with everything the machine needs, but perhaps without room. */
export interface Candidate {
  readonly host: Host;
  readonly ways: readonly Way[];
  /** vCPUs and memory that may be given out in all. */
  readonly cpuLimit: number;
  readonly memoryLimitBytes: number;
  readonly isBusy: boolean;
}

export interface Survey {
  readonly request: PlacementRequest;
  readonly candidates: readonly Candidate[];
  readonly refusals: readonly Refusal[];
  readonly hostBooks: HostBooks;
  readonly storageBooks: StorageBooks;
}

export function surveyHosts(request: PlacementRequest, facts: RegionFacts): Survey {
  const judged = facts.hosts.map((host) => judge(host, request, facts));
  return {
    request,
    candidates: judged.flatMap(({ candidate }) => candidate ?? []),
    refusals: [
      ...judged.flatMap(({ refusals }) => refusals),
      ...unknownHosts(request, facts.hosts),
    ],
    hostBooks: new HostBooks(request, facts),
    storageBooks: new StorageBooks(facts, request.thinStorages ?? []),
  };
}

interface Judged {
  readonly candidate?: Candidate;
  readonly refusals: readonly Refusal[];
}

function judge(host: Host, request: PlacementRequest, facts: RegionFacts): Judged {
  const gate = gateProblem(host, request);
  if (gate !== undefined) return { refusals: [gate] };
  const { ways, problems } = waysOnto(host, request, facts.hosts);
  const refusals = [
    ...tooFewCpus(host, request),
    ...seedProblem(host, request),
    ...(ways.length === 0 ? problems : []),
  ];
  return refusals.length > 0
    ? { refusals }
    : { refusals, candidate: candidateOf(host, ways, { request, facts }) };
}

function candidateOf(
  host: Host,
  ways: readonly Way[],
  { request, facts }: { readonly request: PlacementRequest; readonly facts: RegionFacts },
): Candidate {
  const { cpuOvercommit, memoryOvercommit, memoryReserveBytes } = request.placement;
  return {
    host,
    ways,
    cpuLimit: timesFactor(host.cpus, cpuOvercommit),
    memoryLimitBytes: timesFactor(host.memoryBytes, memoryOvercommit) - memoryReserveBytes,
    isBusy: facts.busyHosts?.includes(host.name) ?? false,
  };
}

// Proxmox accepts such a VM and then refuses to start it, whatever is free.
function tooFewCpus(host: Host, { size }: PlacementRequest): readonly Refusal[] {
  if (size.cpu <= host.cpus) return [];
  return [
    {
      host: host.name,
      reason: 'TooFewCpus',
      sentence: `host ${host.name} has ${host.cpus} CPUs and starts no VM with ${size.cpu} vCPUs`,
      numbers: { needed: size.cpu, hostCpus: host.cpus },
    },
  ];
}

function seedProblem(host: Host, { seedStorage }: PlacementRequest): readonly Refusal[] {
  if (seedStorage === undefined) return [];
  const problem = storageProblem(host, seedStorage, 'iso');
  return problem === undefined ? [] : [problem];
}
