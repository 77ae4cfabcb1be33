// SPDX-License-Identifier: Apache-2.0
// One pvescaler installation of a seed: its settings, its durable records and their backups, its Kubernetes cluster, and
// what the soak knows about its machines.
import type { Fleet, FleetSettings } from '../../src/fleet/index.ts';
import type { Machine } from '../../src/model/machine.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import type { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { SoakCluster } from './kubernetes.ts';
import type { InstallationDescription } from './soak-settings.ts';

const MAX_BACKUPS = 6;

/** Pauses a process in a read call, counted from now. */
export interface Stall {
  callsLeft: number;
  readonly ms: number;
}

export interface SoakProcess {
  readonly holder: string;
  readonly fleet: Fleet;
  stall: Stall | undefined;
  /** Until when it holds the lease, on the monotonic clock. */
  leaseUntil: number;
  /** Every further call fails: its database was replaced. */
  isKilled: boolean;
}

export type CrashKind = 'crash' | 'database-lost' | 'database-rolled-back';

export class Installation {
  readonly name: string;
  readonly id: string;
  readonly settings: FleetSettings;
  /** Undefined: machines join no cluster. */
  readonly cluster: SoakCluster | undefined;
  store: MemoryStore;
  readonly processes = new Set<SoakProcess>();
  /** The process that last acquired or renewed the lease. */
  driver: SoakProcess | undefined;
  /** The process that runs the next pass. */
  process: SoakProcess | undefined;
  /** No process runs until then. */
  pausedUntil = 0;
  /** What happens when the process crashes; undefined while it is not meant to crash. */
  nextCrash: CrashKind | undefined;
  /** Since the last time that all pools had their size. VMs that cannot be read are not counted as members then. */
  hasReplacedDatabase = false;
  /** Machines whose deletion was requested, or whose VM was deleted or taken over by a person. */
  readonly deletionRequested = new Set<string>();
  /** Machines whose VM was restored from a backup after their deletion. */
  readonly restored = new Set<string>();
  /** Machines whose VM a person has taken over; their Nodes stay. */
  readonly takenOver = new Set<string>();
  readonly everReady = new Set<string>();
  readonly ended = new Set<string>();
  presentBefore: ReadonlySet<string> = new Set();
  #backups: readonly MemoryStore[] = [];
  readonly #clock: VirtualClock;

  constructor(
    { name, cluster: id, settings }: InstallationDescription,
    { clock, cluster }: { readonly clock: VirtualClock; readonly cluster: SoakCluster | undefined },
  ) {
    this.name = name;
    this.id = id;
    this.settings = settings;
    this.cluster = cluster;
    this.#clock = clock;
    this.store = new MemoryStore({ clock });
  }

  get pools(): readonly string[] {
    return Object.keys(this.settings.pools);
  }

  maxSizeOf(pool: string): number {
    return this.settings.pools[pool]?.limits.max ?? 0;
  }

  async machines(): Promise<readonly Machine[]> {
    return (await this.store.machines.list()).map(({ value }) => value);
  }

  backUp(): void {
    this.#backups = [...this.#backups, this.store.copy()].slice(-MAX_BACKUPS);
  }

  loseDatabase(): void {
    this.hasReplacedDatabase = true;
    this.store = new MemoryStore({ clock: this.#clock });
    this.#backups = [];
    this.ended.clear();
  }

  /** Restores a backup; false when there is none. Deletions that were requested when it was made are requested again. */
  async rollBack(pick: (count: number) => number): Promise<boolean> {
    const backup = this.#backups[pick(this.#backups.length)];
    if (backup === undefined) return false;
    this.store = backup.copy();
    this.hasReplacedDatabase = true;
    this.ended.clear();
    for (const { value } of await this.store.intents.list()) {
      if (value.kind === 'delete') for (const id of value.machines) this.deletionRequested.add(id);
    }
    for (const { id, phase } of await this.machines()) {
      if (phase === 'deleting') this.deletionRequested.add(id);
    }
    return true;
  }

  /** Whether a stated policy allows deleting the ready machine without a request. */
  isLost(machine: string): boolean {
    return this.cluster?.isLost(machine) ?? false;
  }
}
