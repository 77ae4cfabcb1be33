// SPDX-License-Identifier: Apache-2.0
// What is allocated on each host by configuration, plus the machines planned in this run. Current utilization
// is ignored: an idle VM may become busy.
import type { RegionFacts } from './facts.ts';
import { HostAllocations } from './host-allocations.ts';
import type { PlacementRequest } from './request.ts';

export interface PlannedAllocation {
  readonly cpus: number;
  readonly memoryBytes: number;
  /** All VMs, including stopped and unmanaged ones, except templates. */
  readonly vms: number;
  /** Machines of the requesting pool. */
  readonly poolMachines: number;
}

export class PlannedAllocations {
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
