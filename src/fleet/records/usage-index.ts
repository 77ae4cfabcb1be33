// SPDX-License-Identifier: Apache-2.0
// What placement asks of all records, kept up to date change by change: which machines are in a phase, which names
// and VM ids are held, what is given away of each host. Whoever places one machine of thousands must not count them.
import type { Machine, Phase } from '../../model/machine.ts';
import {
  HostLedger,
  idHoldOf,
  laterFirst,
  type Reservation,
  reservationOf,
  type VmFacts,
} from '../../placement/index.ts';
import { MultiMap } from './multi-map.ts';

interface IdRange {
  readonly from: number;
  readonly to: number;
}

/** The part of a region's view that the ledgers are made from. */
export interface RegionUsage {
  readonly region: string;
  readonly vms: readonly VmFacts[];
  readonly containers: readonly VmFacts[];
}

interface Kept {
  readonly ledger: HostLedger;
  sighting: RegionUsage | undefined;
}

/** Memory that VMs of a pool get beyond their size. */
export type OverheadOf = (pool: string) => number;

export class UsageIndex {
  readonly #all: () => readonly Machine[];
  readonly #overheadOf: OverheadOf;
  readonly #byPhase = new MultiMap<Machine>();
  readonly #byVm = new MultiMap<Machine>();
  readonly #byName = new MultiMap<Machine>();
  readonly #ledgers = new Map<string, Kept>();
  readonly #newest = new Map<string, NewestId>();

  constructor(all: () => readonly Machine[], overheadOf: OverheadOf = () => 0) {
    this.#all = all;
    this.#overheadOf = overheadOf;
  }

  inPhase(...phases: readonly Phase[]): readonly Machine[] {
    return phases.flatMap((phase) => this.#byPhase.get(phase));
  }

  /** By a machine that is not over, other than this one. Lower case. */
  isNameHeld(name: string, other: string): boolean {
    return this.#byName.get(name).some(({ id, phase }) => id !== other && !isOver(phase));
  }

  isVmIdHeld(region: string, vmId: number, now: number): boolean {
    const all = this.#byVm.get(vmKey(region, vmId));
    return all.some((machine) => idHoldOf(machine, now) !== undefined);
  }

  /** The id in the range that was given to the machine asked for last. */
  lastVmId(region: string, range: IdRange): number | undefined {
    const known = this.#newest.get(region);
    if (known !== undefined && known.from === range.from && known.to === range.to) {
      return known.vmId(this.#all);
    }
    const newest = new NewestId(region, range);
    this.#newest.set(region, newest);
    return newest.vmId(this.#all);
  }

  /** What is given away of the region's hosts, by what is seen there and what is promised. */
  ledger(sighting: RegionUsage): HostLedger {
    const { region, vms, containers } = sighting;
    const kept = this.#ledgers.get(region) ?? this.#newLedger(region);
    if (kept.sighting !== sighting) {
      kept.sighting = sighting;
      // A container takes its part of a host as a VM does.
      kept.ledger.look([...vms, ...containers]);
    }
    return kept.ledger;
  }

  machineChanged(before: Machine | undefined, after: Machine | undefined): void {
    if (before !== undefined) this.#forget(before);
    if (after !== undefined) this.#note(after);
    for (const [region, { ledger }] of this.#ledgers) {
      const id = after?.id ?? before?.id ?? '';
      ledger.reserve(id, after === undefined ? undefined : this.#reservationOf(after, region));
    }
    for (const newest of this.#newest.values()) newest.changed(before, after);
  }

  #newLedger(region: string): Kept {
    const ledger = new HostLedger();
    for (const machine of this.#all())
      ledger.reserve(machine.id, this.#reservationOf(machine, region));
    const kept = { ledger, sighting: undefined };
    this.#ledgers.set(region, kept);
    return kept;
  }

  /** Its size is what pods get; its VM takes more where the pool says so. */
  #reservationOf(machine: Machine, region: string): Reservation | undefined {
    const own = reservationOf(machine, region);
    if (own === undefined) return undefined;
    return { ...own, memoryBytes: own.memoryBytes + this.#overheadOf(machine.pool) };
  }

  #note(machine: Machine): void {
    const { id, phase, placement } = machine;
    this.#byPhase.add(phase, id, machine);
    if (placement === undefined) return;
    this.#byVm.add(vmKey(placement.region, placement.vmId), id, machine);
    this.#byName.add(placement.name.toLowerCase(), id, machine);
  }

  #forget({ id, phase, placement }: Machine): void {
    this.#byPhase.remove(phase, id);
    if (placement === undefined) return;
    this.#byVm.remove(vmKey(placement.region, placement.vmId), id);
    this.#byName.remove(placement.name.toLowerCase(), id);
  }
}

/** The newest of the ids that a region has given out; looked for again only when the newest itself goes. */
class NewestId {
  readonly from: number;
  readonly to: number;
  readonly #region: string;
  #newest: Given | undefined;
  #isKnown = false;

  constructor(region: string, { from, to }: IdRange) {
    this.#region = region;
    this.from = from;
    this.to = to;
  }

  vmId(all: () => readonly Machine[]): number | undefined {
    if (!this.#isKnown) {
      for (const machine of all()) this.#consider(machine);
      this.#isKnown = true;
    }
    return this.#newest?.vmId;
  }

  changed(before: Machine | undefined, after: Machine | undefined): void {
    if (before !== undefined && before.id === this.#newest?.id) {
      this.#newest = undefined;
      this.#isKnown = after !== undefined && isSameGift(before, after);
    }
    if (this.#isKnown && after !== undefined) this.#consider(after);
  }

  #consider({ id, requestedAt, placement }: Machine): void {
    if (placement?.region !== this.#region) return;
    const { vmId } = placement;
    if (vmId < this.from || vmId > this.to) return;
    const given = { id, requestedAt, vmId };
    if (this.#newest === undefined || laterFirst(given, this.#newest) < 0) this.#newest = given;
  }
}

interface Given {
  readonly id: string;
  readonly requestedAt: number;
  readonly vmId: number;
}

function isSameGift(before: Machine, after: Machine): boolean {
  const { placement: had } = before;
  const { placement: has } = after;
  return (
    before.requestedAt === after.requestedAt &&
    had?.vmId === has?.vmId &&
    had?.region === has?.region
  );
}

function isOver(phase: Phase): boolean {
  return phase === 'gone' || phase === 'failed';
}

function vmKey(region: string, vmId: number): string {
  return `${region}/${vmId}`;
}
