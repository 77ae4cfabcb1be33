// SPDX-License-Identifier: Apache-2.0
// What is allocated on each host by configuration, updated incrementally: a region may have tens of thousands
// of VMs, and placing a machine must not count them all again.
import type { HostAllocation, Reservation, VmFacts } from './facts.ts';

interface MutableAllocation extends HostAllocation {
  cpus: number;
  memoryBytes: number;
  stoppedCpus: number;
  stoppedMemoryBytes: number;
  vms: number;
  readonly pools: Map<string, number>;
}

/** A VM, a reservation, or both for the same VM id. */
interface Occupant {
  readonly vm: VmFacts | undefined;
  readonly reservation: Reservation | undefined;
}

export class HostAllocations {
  #vms: ReadonlyMap<number, VmFacts> = new Map();
  readonly #reservations = new Map<number, Map<string, Reservation>>();
  readonly #vmIdByMachine = new Map<string, number>();
  readonly #allocations = new Map<string, MutableAllocation>();

  allocationOf(host: string): HostAllocation | undefined {
    return this.#allocations.get(host);
  }

  /** Replaces the list of existing VMs. Each id occurs once. */
  setVms(vms: readonly VmFacts[]): void {
    const before = this.#vms;
    const after = new Map<number, VmFacts>();
    for (const vm of vms) {
      after.set(vm.vmId, vm);
      const known = before.get(vm.vmId);
      if (known === undefined || !isSame(known, vm)) this.#replaceVm(vm.vmId, known, vm);
    }
    for (const [vmId, vm] of before) if (!after.has(vmId)) this.#replaceVm(vmId, vm, undefined);
    this.#vms = after;
  }

  /**
   * Replaces a machine's reservation. If two machines reserve the same VM id, an existing VM belongs to the
   * later one.
   */
  setReservation(machine: string, reservation: Reservation | undefined): void {
    const held = this.#vmIdByMachine.get(machine);
    if (held !== undefined) this.#changeReservations(held, (all) => void all.delete(machine));
    if (reservation === undefined) return void this.#vmIdByMachine.delete(machine);
    this.#vmIdByMachine.set(machine, reservation.vmId);
    this.#changeReservations(reservation.vmId, (all) => void all.set(machine, reservation));
  }

  #changeReservations(vmId: number, change: (all: Map<string, Reservation>) => void): void {
    const vm = this.#vms.get(vmId);
    const all = this.#reservations.get(vmId) ?? new Map<string, Reservation>();
    for (const occupant of occupantsOf(vm, all)) this.#add(occupant, -1);
    change(all);
    for (const occupant of occupantsOf(vm, all)) this.#add(occupant, 1);
    if (all.size === 0) this.#reservations.delete(vmId);
    else this.#reservations.set(vmId, all);
  }

  #replaceVm(vmId: number, before: VmFacts | undefined, after: VmFacts | undefined): void {
    const all = this.#reservations.get(vmId) ?? NO_RESERVATIONS;
    for (const occupant of occupantsOf(before, all)) this.#add(occupant, -1);
    for (const occupant of occupantsOf(after, all)) this.#add(occupant, 1);
  }

  #add(occupant: Occupant, sign: 1 | -1): void {
    const { vm, reservation } = occupant;
    const allocation = this.#mutableAllocationOf(vm?.host ?? reservation?.host ?? '');
    const { cpus, memoryBytes } = sizeOf(occupant);
    allocation.cpus += sign * cpus;
    allocation.memoryBytes += sign * memoryBytes;
    if (vm?.power === 'stopped') {
      const reserved = sizeOf({ vm: undefined, reservation });
      allocation.stoppedCpus += sign * (cpus - reserved.cpus);
      allocation.stoppedMemoryBytes += sign * (memoryBytes - reserved.memoryBytes);
    }
    count(allocation, occupant, sign);
  }

  #mutableAllocationOf(host: string): MutableAllocation {
    const known = this.#allocations.get(host);
    if (known !== undefined) return known;
    const none = { cpus: 0, memoryBytes: 0, stoppedCpus: 0, stoppedMemoryBytes: 0, vms: 0 };
    const allocation = { ...none, pools: new Map<string, number>() };
    this.#allocations.set(host, allocation);
    return allocation;
  }
}

const NO_RESERVATIONS: ReadonlyMap<string, Reservation> = new Map();

/**
 * VM ids are unique in a region: the reservation of an existing VM counts on the VM's host, even after a
 * migration.
 */
function occupantsOf(
  vm: VmFacts | undefined,
  reservations: ReadonlyMap<string, Reservation>,
): readonly Occupant[] {
  const all = [...reservations.values()];
  if (vm !== undefined) return [{ vm, reservation: all.at(-1) }];
  return all.map((reservation) => ({ vm, reservation }));
}

function isSame(one: VmFacts, other: VmFacts): boolean {
  return (
    one.host === other.host &&
    one.power === other.power &&
    one.isTemplate === other.isTemplate &&
    one.cpus === other.cpus &&
    one.memoryBytes === other.memoryBytes
  );
}

function count(allocation: MutableAllocation, { vm, reservation }: Occupant, sign: 1 | -1): void {
  if (reservation !== undefined) {
    allocation.pools.set(reservation.pool, (allocation.pools.get(reservation.pool) ?? 0) + sign);
  }
  if (reservation !== undefined || vm?.isTemplate !== true) allocation.vms += sign;
}

/** The larger of configured and reserved size. A template occupies nothing. */
function sizeOf({ vm, reservation }: Occupant) {
  const existing = vm?.isTemplate === true ? undefined : vm;
  return {
    cpus: Math.max(existing?.cpus ?? 0, reservation?.cpus ?? 0),
    memoryBytes: Math.max(existing?.memoryBytes ?? 0, reservation?.memoryBytes ?? 0),
  };
}
