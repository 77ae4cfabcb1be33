// SPDX-License-Identifier: Apache-2.0
// What placement needs to know of all machines together: the reserved resources of each host and the VM id given
// out last. Updated with every change of a record, so that placing one machine does not count thousands.
import type { Machine } from '../../model/machine.ts';
import {
  compareNewestFirst,
  HostAllocations,
  type Reservation,
  reservationOf,
  type VmFacts,
} from '../../placement/index.ts';

interface IdRange {
  readonly from: number;
  readonly to: number;
}

/** The part of a region's view that counts towards the usage of its hosts. */
export interface RegionUsage {
  readonly region: string;
  readonly vms: readonly VmFacts[];
  readonly containers: readonly VmFacts[];
}

interface RegionAllocations {
  readonly allocations: HostAllocations;
  /** The view that the allocations contains. */
  view: RegionUsage | undefined;
}

/** Memory that VMs of a pool get in addition to their size. */
export type MemoryOverhead = (pool: string) => number;

export class UsageIndex {
  readonly #all: () => readonly Machine[];
  readonly #memoryOverhead: MemoryOverhead;
  readonly #byRegion = new Map<string, RegionAllocations>();
  readonly #lastVmIds = new Map<string, LastVmId>();

  constructor(all: () => readonly Machine[], memoryOverhead: MemoryOverhead = () => 0) {
    this.#all = all;
    this.#memoryOverhead = memoryOverhead;
  }

  /** The VM id in the range that was given to the machine requested last. */
  lastVmId(region: string, range: IdRange): number | undefined {
    const known = this.#lastVmIds.get(region);
    if (known !== undefined && known.from === range.from && known.to === range.to) {
      return known.vmId(this.#all);
    }
    const last = new LastVmId(region, range);
    this.#lastVmIds.set(region, last);
    return last.vmId(this.#all);
  }

  /** Resources of the region's hosts that VMs, containers and reservations use. */
  allocationsOf(view: RegionUsage): HostAllocations {
    const { region, vms, containers } = view;
    const kept = this.#byRegion.get(region) ?? this.#createAllocations(region);
    if (kept.view !== view) {
      kept.view = view;
      // A container uses resources of its host as a VM does.
      kept.allocations.setVms([...vms, ...containers]);
    }
    return kept.allocations;
  }

  /** The memory overhead of pools has changed. */
  updateReservations(): void {
    for (const [region, { allocations }] of this.#byRegion)
      for (const machine of this.#all())
        allocations.setReservation(machine.id, this.#reservationOf(machine, region));
  }

  machineChanged(before: Machine | undefined, after: Machine | undefined): void {
    for (const [region, { allocations }] of this.#byRegion) {
      const id = after?.id ?? before?.id ?? '';
      allocations.setReservation(
        id,
        after === undefined ? undefined : this.#reservationOf(after, region),
      );
    }
    for (const last of this.#lastVmIds.values()) last.machineChanged(before, after);
  }

  #createAllocations(region: string): RegionAllocations {
    const allocations = new HostAllocations();
    for (const machine of this.#all())
      allocations.setReservation(machine.id, this.#reservationOf(machine, region));
    const kept = { allocations, view: undefined };
    this.#byRegion.set(region, kept);
    return kept;
  }

  /** A machine's size is what pods can use; its VM may have more memory. */
  #reservationOf(machine: Machine, region: string): Reservation | undefined {
    const reservation = reservationOf(machine, region);
    if (reservation === undefined) return undefined;
    const memoryBytes = reservation.memoryBytes + this.#memoryOverhead(machine.pool);
    return { ...reservation, memoryBytes };
  }
}

/** The VM id of a region that was given out last; scans all machines again only when that machine's record goes. */
class LastVmId {
  readonly from: number;
  readonly to: number;
  readonly #region: string;
  #last: GivenVmId | undefined;
  #isKnown = false;

  constructor(region: string, { from, to }: IdRange) {
    this.#region = region;
    this.from = from;
    this.to = to;
  }

  vmId(all: () => readonly Machine[]): number | undefined {
    if (!this.#isKnown) {
      for (const machine of all()) this.#compare(machine);
      this.#isKnown = true;
    }
    return this.#last?.vmId;
  }

  machineChanged(before: Machine | undefined, after: Machine | undefined): void {
    if (before !== undefined && before.id === this.#last?.id) {
      this.#last = undefined;
      this.#isKnown = after !== undefined && hasSameVmId(before, after);
    }
    if (this.#isKnown && after !== undefined) this.#compare(after);
  }

  #compare({ id, requestedAt, placement }: Machine): void {
    if (placement?.region !== this.#region) return;
    const { vmId } = placement;
    if (vmId < this.from || vmId > this.to) return;
    const given = { id, requestedAt, vmId };
    if (this.#last === undefined || compareNewestFirst(given, this.#last) < 0) this.#last = given;
  }
}

interface GivenVmId {
  readonly id: string;
  readonly requestedAt: number;
  readonly vmId: number;
}

function hasSameVmId(before: Machine, after: Machine): boolean {
  const { placement: had } = before;
  const { placement: has } = after;
  return (
    before.requestedAt === after.requestedAt &&
    had?.vmId === has?.vmId &&
    had?.region === has?.region
  );
}
