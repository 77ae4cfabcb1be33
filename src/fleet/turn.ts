// SPDX-License-Identifier: Apache-2.0
// What one round works with: the records, a view of each region, the right to act, and what the process
// remembers from earlier rounds. The memory makes rounds cheaper and quieter; losing it loses nothing.
import type { JournalKind, JournalSubject } from '../model/journal-entry.ts';
import type { Machine, Placement } from '../model/machine.ts';
import type { Template } from '../placement/index.ts';
import type { Clock } from '../ports/clock.ts';
import { Bug, LostLeadership } from '../ports/errors.ts';
import type {
  CallOptions,
  Hypervisor,
  RegionView,
  TaskRef,
  VmSummary,
} from '../ports/hypervisor.ts';
import type { Journal } from '../ports/journal.ts';
import type { Random } from '../ports/random.ts';
import type { Books } from './books.ts';
import { Errands } from './errands.ts';
import type { Leadership } from './leadership.ts';
import { Guests } from './lifecycle/guests.ts';
import type { FleetSettings, PoolSettings, RegionSettings } from './settings.ts';

/** What a VM's configuration says of its addresses. */
export interface KnownAddresses {
  /** What the overview said of the VM when it was read. */
  readonly looks: string;
  readonly readAt: number;
  readonly addresses: readonly string[];
}

export interface Views {
  /** Fresh ones only. */
  readonly views: ReadonlyMap<string, RegionView>;
  /** Why the others could not be read. */
  readonly stale: Readonly<Record<string, string>>;
}

export class Memory {
  /** Machines that are left alone until then, after trouble. */
  readonly pauses = new Map<string, { readonly until: number; readonly count: number }>();
  /** The last reason told about a subject: told again only when it changes. */
  readonly told = new Map<string, string>();
  /** Since when a VM that should be there has not been seen. */
  readonly missingSince = new Map<string, number>();
  /** Image downloads under way, by where they go. */
  readonly downloads = new Map<string, TaskRef>();
  /** Looks at images under way, shared by all machines that wait for the same one. */
  readonly imageChecks = new Map<string, Promise<boolean>>();
  /** VMs that were looked at and are not ours, by what the overview said of them. */
  readonly strangers = new Map<string, string>();
  /** Addresses that configurations and markers of others name, by region and VM id. */
  readonly addresses = new Map<string, KnownAddresses>();
  /** Of each region the last fresh reading. */
  readonly seenAt = new Map<string, number>();
  readonly guests = new Guests();
  /** Seeds being deleted, by machine. */
  readonly seedRemovals = new Errands();
  /** The last views, for rounds that follow each other closely. */
  views: Views | undefined;
  sweptAt = Number.NEGATIVE_INFINITY;
  prunedAt = Number.NEGATIVE_INFINITY;
}

export interface TurnParts {
  readonly settings: FleetSettings;
  readonly hypervisors: ReadonlyMap<string, Hypervisor>;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Journal;
  readonly books: Books;
  readonly leadership: Leadership;
  readonly memory: Memory;
  readonly takenAddresses?: (() => readonly string[]) | undefined;
  /** Fresh ones only: a region that is not in here decides nothing. */
  readonly views: ReadonlyMap<string, RegionView>;
}

export interface Telling {
  readonly kind: JournalKind;
  readonly subject: JournalSubject;
  readonly reason: string;
  readonly message: string;
  readonly numbers?: Readonly<Record<string, number | string>>;
}

export class Turn {
  readonly settings: FleetSettings;
  readonly books: Books;
  readonly memory: Memory;
  readonly random: Random;
  readonly clock: Clock;
  readonly views: ReadonlyMap<string, RegionView>;
  /** Of each region a VM that may be ours and could not be read: nobody knows its addresses. */
  readonly unread = new Map<string, VmSummary>();
  /** What the sources of pools name, by region and source. */
  readonly templates = new Map<string, Promise<readonly Template[]>>();
  readonly #parts: TurnParts;
  readonly #seen = new Map<string, ReadonlyMap<number, VmSummary>>();

  constructor(parts: TurnParts) {
    this.#parts = parts;
    this.settings = parts.settings;
    this.books = parts.books;
    this.memory = parts.memory;
    this.random = parts.random;
    this.clock = parts.clock;
    this.views = parts.views;
  }

  get now(): number {
    return this.#parts.clock.now();
  }

  pool(name: string): PoolSettings | undefined {
    return this.settings.pools[name];
  }

  region(name: string): RegionSettings {
    const region = this.settings.regions[name];
    if (region === undefined) throw new Bug('BUG', `no region ${name}`);
    return region;
  }

  hypervisor(region: string): Hypervisor {
    const hypervisor = this.#parts.hypervisors.get(region);
    if (hypervisor === undefined) throw new Bug('BUG', `no connection to region ${region}`);
    return hypervisor;
  }

  knows(region: string): boolean {
    return this.#parts.hypervisors.has(region) && this.settings.regions[region] !== undefined;
  }

  /** A VM as its region's view shows it. */
  seen({ region, vmId }: Pick<Placement, 'region' | 'vmId'>): VmSummary | undefined {
    const vms =
      this.#seen.get(region) ?? new Map(this.views.get(region)?.vms.map((vm) => [vm.vmId, vm]));
    this.#seen.set(region, vms);
    return vms.get(vmId);
  }

  /** Had by Nodes, whoever made those. */
  takenAddresses(): readonly string[] {
    return this.#parts.takenAddresses?.() ?? [];
  }

  /** For calls that only look. */
  get reading(): CallOptions {
    return { signal: this.#parts.leadership.signal };
  }

  /** For calls that change something: asked for right before each, since the lease may have passed on. */
  get acting(): CallOptions {
    const { leadership } = this.#parts;
    const { lease, signal } = leadership;
    if (signal?.aborted === true || !leadership.mayAct()) {
      throw new LostLeadership('LEASE_LOST', `${lease.holder} no longer holds ${lease.name}`);
    }
    return { signal };
  }

  async tell({ numbers, ...telling }: Telling): Promise<void> {
    await this.#parts.journal.append({
      at: this.now,
      ...telling,
      ...(numbers !== undefined && { numbers }),
    });
  }

  /** Forgets the oldest entries of the journal. */
  async pruneJournal(rule: { readonly beforeMs: number; readonly keep: number }): Promise<void> {
    await this.#parts.journal.prune(rule);
  }

  /** Says it once, until something else is said about the same subject. */
  async tellOnce(about: string, telling: Telling): Promise<void> {
    const words = `${telling.reason} ${telling.message}`;
    if (this.memory.told.get(about) === words) return;
    this.memory.told.set(about, words);
    await this.tell(telling);
  }

  tellOf(machine: Machine, telling: Omit<Telling, 'subject'>): Promise<void> {
    return this.tell({ ...telling, subject: subjectOf(machine) });
  }
}

export function subjectOf({ id, pool, placement }: Machine): JournalSubject {
  return {
    pool,
    machine: id,
    ...(placement !== undefined && { host: placement.host, region: placement.region }),
  };
}
