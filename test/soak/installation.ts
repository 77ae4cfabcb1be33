// SPDX-License-Identifier: Apache-2.0
// One pvescaler installation of a seed: its settings, its durable records and their backups, its Kubernetes cluster, and
// what the soak knows about its machines.
import type { DriverRegistry, Fleet, FleetSettings } from '../../src/fleet/index.ts';
import type { Lease } from '../../src/model/lease.ts';
import type { Machine } from '../../src/model/machine.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import type { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { CollectionName, RecordKinds } from '../../src/ports/record-validators.ts';
import type { Collection } from '../../src/ports/store.ts';
import { AddressUse } from './address-use.ts';
import type { SoakCluster } from './kubernetes.ts';
import type { KubernetesRecords, ProcessStore } from './kubernetes-records.ts';
import type { InstallationDescription } from './soak-settings.ts';

const MAX_BACKUPS = 6;

/** Pauses a process in a read call, counted from now. */
export interface Stall {
  callsLeft: number;
  readonly ms: number;
}

export interface SoakProcess {
  readonly holder: string;
  fleet: Fleet;
  /** The engine of a new term: it remembers nothing of the one before. */
  readonly startTerm: () => Fleet;
  stall: Stall | undefined;
  /** Until when it holds the lease, on the monotonic clock. */
  leaseUntil: number;
  /** Every further call fails: its database was replaced. */
  isKilled: boolean;
  /** Its connection to the records; undefined: they are in the installation's database. */
  readonly records: ProcessStore | undefined;
  readonly registry: DriverRegistry | undefined;
  /** The last lease of a pass. */
  lease?: Lease;
  /** Rejects when its store cannot be opened. */
  readonly opened: Promise<void>;
  /** What it has deferred is lost. */
  readonly kill: () => void;
}

export type CrashKind = 'crash' | 'database-lost' | 'database-rolled-back';

interface InstallationParts {
  readonly clock: VirtualClock;
  readonly cluster: SoakCluster | undefined;
  readonly objects: KubernetesRecords | undefined;
}

export class Installation {
  readonly name: string;
  readonly id: string;
  readonly settings: FleetSettings;
  /** Undefined: machines join no cluster. */
  readonly cluster: SoakCluster | undefined;
  /** Undefined: the records are in `store`. */
  readonly objects: KubernetesRecords | undefined;
  /** Has the leases, the journal, and the records unless they are objects. */
  store: MemoryStore;
  readonly processes = new Set<SoakProcess>();
  /** The process that last acquired or renewed the lease. */
  driver: SoakProcess | undefined;
  /** The process that runs the next pass. */
  process: SoakProcess | undefined;
  /** Another replica, which takes over in a failover. */
  standby: SoakProcess | undefined;
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
  readonly addressUse = new AddressUse();
  readonly ended = new Set<string>();
  presentBefore: ReadonlySet<string> = new Set();
  #backups: readonly MemoryStore[] = [];
  readonly #clock: VirtualClock;

  constructor(
    { name, cluster: id, settings }: InstallationDescription,
    { clock, cluster, objects }: InstallationParts,
  ) {
    this.name = name;
    this.id = id;
    this.settings = settings;
    this.cluster = cluster;
    this.objects = objects;
    this.#clock = clock;
    this.store = new MemoryStore({ clock });
  }

  get pools(): readonly string[] {
    return Object.keys(this.settings.pools);
  }

  maxSizeOf(pool: string): number {
    return this.settings.pools[pool]?.limits.max ?? 0;
  }

  /** The durable records. */
  async list<N extends CollectionName>(collection: N): Promise<readonly RecordKinds[N][]> {
    if (this.objects !== undefined) return this.objects.list(collection);
    const records: { readonly [K in CollectionName]: Collection<RecordKinds[K]> } = this.store;
    return (await records[collection].list()).map(({ value }) => value);
  }

  machines(): Promise<readonly Machine[]> {
    return this.list('machines');
  }

  backUp(): void {
    if (this.objects !== undefined) return this.objects.backUp();
    this.#backups = [...this.#backups, this.store.copy()].slice(-MAX_BACKUPS);
  }

  loseDatabase(): void {
    this.hasReplacedDatabase = true;
    if (this.objects === undefined) this.store = new MemoryStore({ clock: this.#clock });
    this.objects?.lose();
    this.#backups = [];
    this.ended.clear();
  }

  /** Restores a backup; false when there is none. Deletions that were requested when it was made are requested again. */
  async rollBack(pick: (count: number) => number): Promise<boolean> {
    if (!this.#restore(pick)) return false;
    this.hasReplacedDatabase = true;
    this.ended.clear();
    await this.recordDeletionRequests();
    for (const { id, phase } of await this.machines()) {
      if (phase === 'deleting') this.deletionRequested.add(id);
    }
    return true;
  }

  #restore(pick: (count: number) => number): boolean {
    if (this.objects !== undefined) return this.objects.rollBack(pick);
    const backup = this.#backups[pick(this.#backups.length)];
    if (backup === undefined) return false;
    this.store = backup.copy();
    return true;
  }

  /** Every durable request for a deletion counts, also one whose answer was lost. */
  async recordDeletionRequests(): Promise<void> {
    for (const intent of await this.list('intents')) {
      if (intent.kind === 'delete')
        for (const id of intent.machines) this.deletionRequested.add(id);
    }
  }

  /** Whether a stated policy allows deleting the ready machine without a request. */
  isLost(machine: string): boolean {
    return this.cluster?.isLost(machine) ?? false;
  }
}
