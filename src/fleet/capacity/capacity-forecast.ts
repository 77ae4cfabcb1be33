// SPDX-License-Identifier: Apache-2.0
// What the last passes read: the age of each region's view, and how many more machines of each pool fit. Passes write
// it, front ends read it without a call to Proxmox. It is discarded at the end of the driver's term, because another
// process may have changed everything since.
import type { Lease } from '../../model/lease.ts';
import type { HostHeadroom } from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { type Deadline, type DriverLease, NEVER } from '../context/driver-lease.ts';
import type { FleetSettings } from '../context/settings.ts';
import { vmsById } from '../context/taken.ts';

/** How many more machines of a node group can be placed, beyond those placed and those waiting when it was computed. */
export interface Headroom {
  readonly machines: number;
  readonly countedAt: number;
  /** Machines that waited for a place: placing them does not reduce `machines`. */
  readonly waiting: ReadonlySet<string>;
  /** Why there is no headroom; undefined when there is. */
  readonly reason: string | undefined;
}

/** What the hosts have left, per region and pool, as of the last computation. */
export interface FleetCapacity {
  readonly computedAt: number;
  /** Regions that were read at least once. */
  readonly regions: readonly RegionCapacity[];
  /** Machines that waited for a place and are taken into account. */
  readonly counted: ReadonlySet<string>;
  /** Machines that found no place, with the reason. */
  readonly unplaced: ReadonlyMap<string, PlacementRefusal>;
}

/** Why a machine cannot be placed now. */
export interface PlacementRefusal {
  readonly code: string;
  readonly message: string;
}

export interface RegionCapacity {
  readonly region: string;
  /** Wall clock of the view. */
  readonly takenAt: number;
  readonly pools: readonly {
    readonly pool: string;
    readonly hosts: readonly HostHeadroom[];
    /** For how many machines there are VM ids and addresses. */
    readonly identities: { readonly machines: number; readonly reason: string };
  }[];
}

/** Read-only access. */
export interface ForecastReader {
  /** Whether every VM of ours in that region has a record, according to a driver that still holds its lease. */
  isComplete(region: string): boolean;
  /** Wall clock of the newest view; undefined before the first. */
  takenAt(region: string): number | undefined;
  /** Why the last read of the region failed. */
  readError(region: string): string | undefined;
  /** Whether the newest view has a VM with that id, managed or not. */
  hasVm(region: string, vmId: number): boolean;
  /** Undefined before the first computation. */
  headroom(nodeGroup: string): Headroom | undefined;
}

/** The whole forecast as plain data, for another thread. */
export interface ForecastReport {
  readonly until: Deadline;
  readonly regions: Readonly<Record<string, RegionReport>>;
  readonly headrooms: Readonly<Record<string, Headroom>>;
}

export interface RegionReport {
  readonly isAdopted: boolean;
  readonly takenAt: number | undefined;
  readonly readError: string | undefined;
  readonly vmIds: Uint32Array;
}

export class CapacityForecast implements ForecastReader {
  readonly #views = new Map<string, RegionView>();
  readonly #readErrors = new Map<string, string>();
  readonly #headrooms = new Map<string, Headroom>();
  readonly #adopted = new Set<string>();
  #capacity: FleetCapacity | undefined;
  #listener: () => void = () => undefined;
  #driver: DriverLease | undefined;
  #isFollowing = false;
  forecastAt = Number.NEGATIVE_INFINITY;
  /** Those that it was computed with. */
  settings: FleetSettings | undefined;

  get isDriving(): boolean {
    return this.#driver !== undefined;
  }

  /** The newest views of this term, or since it ended. */
  get views(): readonly RegionView[] {
    return [...this.#views.values()];
  }

  /** A new term begins: everything read in an earlier one is outdated, but not what this process read meanwhile. */
  beginTerm(driver: DriverLease): void {
    if (!this.#isFollowing) this.#forget();
    this.#isFollowing = false;
    this.#driver = driver;
    this.#listener();
  }

  endTerm(driver: DriverLease): void {
    if (this.#driver !== driver) return;
    this.#driver = undefined;
    this.#forget();
    this.#listener();
  }

  /** Takes over what this process has read while another one drives, without the capacity. */
  follow(read: CapacityForecast): void {
    if (this.#driver !== undefined) return;
    this.#forget();
    this.#isFollowing = true;
    for (const [region, view] of read.#views) this.#views.set(region, view);
    for (const [region, why] of read.#readErrors) this.#readErrors.set(region, why);
    for (const [group, headroom] of read.#headrooms) this.#headrooms.set(group, headroom);
    for (const region of read.#adopted) this.#adopted.add(region);
    this.#listener();
  }

  /** Every VM of ours in these regions has a record now. */
  setAdopted(regions: Iterable<string>): void {
    for (const region of regions) this.#adopted.add(region);
    this.#listener();
  }

  isComplete(region: string): boolean {
    return this.#adopted.has(region) && (this.#driver?.mayAct() ?? true);
  }

  setViews(views: ReadonlyMap<string, RegionView>, stale: Readonly<Record<string, string>>): void {
    for (const [region, view] of views) {
      this.#views.set(region, view);
      this.#readErrors.delete(region);
    }
    for (const [region, why] of Object.entries(stale)) this.#readErrors.set(region, why);
    this.#listener();
  }

  takenAt(region: string): number | undefined {
    return this.#views.get(region)?.takenAt;
  }

  readError(region: string): string | undefined {
    return this.#readErrors.get(region);
  }

  hasVm(region: string, vmId: number): boolean {
    const view = this.#views.get(region);
    return view !== undefined && vmsById(view).has(vmId);
  }

  setHeadroom(nodeGroup: string, headroom: Headroom): void {
    this.#headrooms.set(nodeGroup, headroom);
  }

  /** Forgets the other node groups, which have left the config. */
  retainHeadrooms(nodeGroups: ReadonlySet<string>): void {
    for (const id of this.#headrooms.keys()) if (!nodeGroups.has(id)) this.#headrooms.delete(id);
  }

  /** Call it after the headroom of all node groups was set. */
  notify(): void {
    this.#listener();
  }

  headroom(nodeGroup: string): Headroom | undefined {
    return this.#headrooms.get(nodeGroup);
  }

  /** A region that was not read keeps what was known of it. */
  setCapacity(capacity: FleetCapacity): void {
    const names = new Set(capacity.regions.map(({ region }) => region));
    const unread = this.#capacity?.regions.filter(({ region }) => !names.has(region)) ?? [];
    this.#capacity = { ...capacity, regions: [...capacity.regions, ...unread] };
  }

  /** Undefined before the first computation of this process's term as driver. */
  get capacity(): FleetCapacity | undefined {
    return this.#capacity;
  }

  /** The lease that this process drives with; undefined when it is not the driver. */
  get driverLease(): Lease | undefined {
    return this.#driver?.mayAct() === true ? this.#driver.lease : undefined;
  }

  /** Sets the one listener, which is called after each change. */
  onChange(listener: () => void): void {
    this.#listener = listener;
  }

  report(): ForecastReport {
    const names = new Set([...this.#views.keys(), ...this.#readErrors.keys(), ...this.#adopted]);
    return {
      until: this.#driver?.until() ?? NEVER,
      regions: Object.fromEntries(Array.from(names, (name) => [name, this.#region(name)])),
      headrooms: Object.fromEntries(this.#headrooms),
    };
  }

  #region(name: string): RegionReport {
    const view = this.#views.get(name);
    return {
      isAdopted: this.#adopted.has(name),
      takenAt: view?.takenAt,
      readError: this.#readErrors.get(name),
      vmIds: Uint32Array.from(view?.vms ?? [], ({ vmId }) => vmId),
    };
  }

  #forget(): void {
    for (const kept of [this.#views, this.#readErrors, this.#headrooms, this.#adopted]) {
      kept.clear();
    }
    this.#capacity = undefined;
    this.forecastAt = Number.NEGATIVE_INFINITY;
  }
}
