// SPDX-License-Identifier: Apache-2.0
// What is given away of each host by configuration, kept up to date change by change: a region may have tens of
// thousands of VMs, and a machine is to be placed without counting them all again.
import type { HostTally, Reservation, VmFacts } from './facts.ts';

interface Tally extends HostTally {
  cpus: number;
  memoryBytes: number;
  stoppedCpus: number;
  stoppedMemoryBytes: number;
  vms: number;
  readonly pools: Map<string, number>;
}

/** One thing that takes something of its host: a VM, a reservation, or both in one. */
interface Part {
  readonly vm: VmFacts | undefined;
  readonly reservation: Reservation | undefined;
}

export class HostLedger {
  #vms: ReadonlyMap<number, VmFacts> = new Map();
  readonly #reservations = new Map<number, Map<string, Reservation>>();
  readonly #vmIdOf = new Map<string, number>();
  readonly #tallies = new Map<string, Tally>();

  tally(host: string): HostTally | undefined {
    return this.#tallies.get(host);
  }

  /** All VMs that there are now, each id once. */
  look(vms: readonly VmFacts[]): void {
    const before = this.#vms;
    const after = new Map<number, VmFacts>();
    for (const vm of vms) {
      after.set(vm.vmId, vm);
      const known = before.get(vm.vmId);
      if (known === undefined || !isSame(known, vm)) this.#turn(vm.vmId, known, vm);
    }
    for (const [vmId, vm] of before) if (!after.has(vmId)) this.#turn(vmId, vm, undefined);
    this.#vms = after;
  }

  /** What a machine holds now, instead of what it held. Of two with one VM id, a VM that is seen is the later one's. */
  reserve(machine: string, reservation: Reservation | undefined): void {
    const held = this.#vmIdOf.get(machine);
    if (held !== undefined) this.#change(held, (all) => void all.delete(machine));
    if (reservation === undefined) return void this.#vmIdOf.delete(machine);
    this.#vmIdOf.set(machine, reservation.vmId);
    this.#change(reservation.vmId, (all) => void all.set(machine, reservation));
  }

  #change(vmId: number, change: (all: Map<string, Reservation>) => void): void {
    const vm = this.#vms.get(vmId);
    const all = this.#reservations.get(vmId) ?? new Map<string, Reservation>();
    for (const part of partsOf(vm, all)) this.#add(part, -1);
    change(all);
    for (const part of partsOf(vm, all)) this.#add(part, 1);
    if (all.size === 0) this.#reservations.delete(vmId);
    else this.#reservations.set(vmId, all);
  }

  #turn(vmId: number, before: VmFacts | undefined, after: VmFacts | undefined): void {
    const all = this.#reservations.get(vmId) ?? NO_RESERVATIONS;
    for (const part of partsOf(before, all)) this.#add(part, -1);
    for (const part of partsOf(after, all)) this.#add(part, 1);
  }

  #add(part: Part, sign: 1 | -1): void {
    const { vm, reservation } = part;
    const tally = this.#tallyOf(vm?.host ?? reservation?.host ?? '');
    const { cpus, memoryBytes } = sizeOf(part);
    tally.cpus += sign * cpus;
    tally.memoryBytes += sign * memoryBytes;
    if (vm?.power === 'stopped') {
      const promised = sizeOf({ vm: undefined, reservation });
      tally.stoppedCpus += sign * (cpus - promised.cpus);
      tally.stoppedMemoryBytes += sign * (memoryBytes - promised.memoryBytes);
    }
    count(tally, part, sign);
  }

  #tallyOf(host: string): Tally {
    const known = this.#tallies.get(host);
    if (known !== undefined) return known;
    const none = { cpus: 0, memoryBytes: 0, stoppedCpus: 0, stoppedMemoryBytes: 0, vms: 0 };
    const tally = { ...none, pools: new Map<string, number>() };
    this.#tallies.set(host, tally);
    return tally;
  }
}

const NO_RESERVATIONS: ReadonlyMap<string, Reservation> = new Map();

/** Ids are unique in a region: a reservation that is seen is where its VM is, even if that has moved. */
function partsOf(
  vm: VmFacts | undefined,
  reservations: ReadonlyMap<string, Reservation>,
): readonly Part[] {
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

function count(tally: Tally, { vm, reservation }: Part, sign: 1 | -1): void {
  if (reservation !== undefined) {
    tally.pools.set(reservation.pool, (tally.pools.get(reservation.pool) ?? 0) + sign);
  }
  if (reservation !== undefined || vm?.isTemplate !== true) tally.vms += sign;
}

/** The larger of what is shown and what is promised; a template takes nothing. */
function sizeOf({ vm, reservation }: Part) {
  const shown = vm?.isTemplate === true ? undefined : vm;
  return {
    cpus: Math.max(shown?.cpus ?? 0, reservation?.cpus ?? 0),
    memoryBytes: Math.max(shown?.memoryBytes ?? 0, reservation?.memoryBytes ?? 0),
  };
}
