// SPDX-License-Identifier: Apache-2.0
// What is given away of each host by configuration. Momentary use decides nothing: an idle VM may wake up.
import type { RegionFacts, Reservation, VmFacts } from './facts.ts';
import type { PlacementRequest } from './request.ts';

export interface HostEntry {
  readonly cpus: number;
  readonly memoryBytes: number;
  /** VMs of anybody, stopped ones too, templates not. */
  readonly vms: number;
  /** Machines of the pool that asks. */
  readonly poolMachines: number;
}

const NOTHING: HostEntry = { cpus: 0, memoryBytes: 0, vms: 0, poolMachines: 0 };

export class HostBooks {
  readonly #request: PlacementRequest;
  readonly #entries = new Map<string, HostEntry>();

  constructor(request: PlacementRequest, { vms, reservations }: RegionFacts) {
    this.#request = request;
    const reserved = new Map(reservations.map((one) => [one.vmId, one]));
    const seen = new Set(vms.map(({ vmId }) => vmId));
    // Ids are unique in a region: a reservation that is seen is where its VM is, even if that has moved.
    for (const vm of vms) this.#add(vm.host, this.#entryOf(vm, reserved.get(vm.vmId)));
    for (const one of reservations) {
      if (!seen.has(one.vmId)) this.#add(one.host, this.#entryOf(undefined, one));
    }
  }

  entry(host: string): HostEntry {
    return this.#entries.get(host) ?? NOTHING;
  }

  /** As if one more machine of the request stood there. */
  book(host: string): void {
    const { cpu, memoryBytes } = this.#request.size;
    this.#add(host, { cpus: cpu, memoryBytes, vms: 1, poolMachines: 1 });
  }

  #entryOf(vm: VmFacts | undefined, reservation: Reservation | undefined): HostEntry {
    const shown = vm !== undefined && this.#takesRoom(vm) ? vm : undefined;
    const isOnlyTemplate = reservation === undefined && vm?.isTemplate === true;
    return {
      ...larger(shown, reservation),
      vms: isOnlyTemplate ? 0 : 1,
      poolMachines: reservation?.pool === this.#request.pool ? 1 : 0,
    };
  }

  // `unknown` is what a VM reads while the overview lags behind: it may well run.
  #takesRoom({ isTemplate, power }: VmFacts): boolean {
    if (isTemplate) return false;
    return power !== 'stopped' || this.#request.countsStopped !== false;
  }

  #add(host: string, more: HostEntry): void {
    const known = this.entry(host);
    this.#entries.set(host, {
      cpus: known.cpus + more.cpus,
      memoryBytes: known.memoryBytes + more.memoryBytes,
      vms: known.vms + more.vms,
      poolMachines: known.poolMachines + more.poolMachines,
    });
  }
}

type Size = Pick<VmFacts, 'cpus' | 'memoryBytes'>;

function larger(left: Size | undefined, right: Size | undefined) {
  return {
    cpus: Math.max(left?.cpus ?? 0, right?.cpus ?? 0),
    memoryBytes: Math.max(left?.memoryBytes ?? 0, right?.memoryBytes ?? 0),
  };
}
