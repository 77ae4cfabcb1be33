// SPDX-License-Identifier: Apache-2.0
// What the last rounds saw, for those who ask in between: how old the view of each region is, and for how many more
// machines of each pool there was room. Rounds write it, faces read it; nobody waits for Proxmox here. It ends with the
// leadership: what another process did since then is in nobody's records here.
import type { RegionView } from '../../ports/hypervisor.ts';
import { type Deadline, type DriverLease, NEVER } from '../context/driver-lease.ts';
import { vmsById } from '../context/taken.ts';

/** How many machines would find a place beyond those that had one and those that waited when it was counted. */
export interface Headroom {
  readonly machines: number;
  readonly countedAt: number;
  /** Those that waited: they take nothing of it when they get their places. */
  readonly waiting: ReadonlySet<string>;
  /** One sentence, where there is none. */
  readonly reason: string | undefined;
}

/** For those who only look. */
export interface ForecastReader {
  /** Whether the records are all there is in that region, by a process that still drives. */
  isComplete(region: string): boolean;
  /** Wall clock of the newest view; undefined before the first. */
  takenAt(region: string): number | undefined;
  /** Why the last try to read it failed. */
  readError(region: string): string | undefined;
  /** Whether the newest view has a VM of that id, anybody's. */
  hasVm(region: string, vmId: number): boolean;
  /** Undefined while nobody has counted. */
  headroom(pool: string): Headroom | undefined;
}

/** All of it as plain data, for another thread. */
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
  readonly #troubles = new Map<string, string>();
  readonly #rooms = new Map<string, Headroom>();
  readonly #adopted = new Set<string>();
  #listener: () => void = () => undefined;
  #driver: DriverLease | undefined;
  forecastAt = Number.NEGATIVE_INFINITY;

  /** Somebody begins to drive: whatever was seen under another is old. */
  beginTerm(driver: DriverLease): void {
    this.#forget();
    this.#driver = driver;
    this.#listener();
  }

  endTerm(driver: DriverLease): void {
    if (this.#driver !== driver) return;
    this.#forget();
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
      this.#troubles.delete(region);
    }
    for (const [region, why] of Object.entries(stale)) this.#troubles.set(region, why);
    this.#listener();
  }

  takenAt(region: string): number | undefined {
    return this.#views.get(region)?.takenAt;
  }

  readError(region: string): string | undefined {
    return this.#troubles.get(region);
  }

  hasVm(region: string, vmId: number): boolean {
    const view = this.#views.get(region);
    return view !== undefined && vmsById(view).has(vmId);
  }

  setHeadroom(pool: string, room: Headroom): void {
    this.#rooms.set(pool, room);
  }

  /** The rooms of all pools are of one count now. */
  notify(): void {
    this.#listener();
  }

  headroom(pool: string): Headroom | undefined {
    return this.#rooms.get(pool);
  }

  /** One listener, told after each change. */
  onChange(listener: () => void): void {
    this.#listener = listener;
  }

  report(): ForecastReport {
    const names = new Set([...this.#views.keys(), ...this.#troubles.keys(), ...this.#adopted]);
    return {
      until: this.#driver?.until() ?? NEVER,
      regions: Object.fromEntries(Array.from(names, (name) => [name, this.#region(name)])),
      headrooms: Object.fromEntries(this.#rooms),
    };
  }

  #region(name: string): RegionReport {
    const view = this.#views.get(name);
    return {
      isAdopted: this.#adopted.has(name),
      takenAt: view?.takenAt,
      readError: this.#troubles.get(name),
      vmIds: Uint32Array.from(view?.vms ?? [], ({ vmId }) => vmId),
    };
  }

  #forget(): void {
    for (const kept of [this.#views, this.#troubles, this.#rooms, this.#adopted]) {
      kept.clear();
    }
    this.forecastAt = Number.NEGATIVE_INFINITY;
  }
}
