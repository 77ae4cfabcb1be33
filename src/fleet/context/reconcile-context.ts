// SPDX-License-Identifier: Apache-2.0
// What one round works with: the records, a view of each region, the right to act, and what the process
// remembers from earlier rounds. The memory makes rounds cheaper and quieter; losing it loses nothing.
import type { JournalEntry, JournalKind, JournalSubject } from '../../model/journal-entry.ts';
import type { Machine, Placement } from '../../model/machine.ts';
import type { Template } from '../../placement/index.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Cluster } from '../../ports/cluster.ts';
import { Bug, LostLeadership } from '../../ports/errors.ts';
import type { CallOptions, Hypervisor, RegionView, VmSummary } from '../../ports/hypervisor.ts';
import type { Journal } from '../../ports/journal.ts';
import type { Random } from '../../ports/random.ts';
import type { Records } from '../records/records.ts';
import { type ClusterReading, knownNodes } from './cluster-reading.ts';
import type { WriteAuthority } from './driver-lease.ts';
import type { DriverState } from './driver-state.ts';
import { eventOf } from './events.ts';
import type { FleetSettings, PoolSettings, RegionSettings } from './settings.ts';
import { vmsById } from './taken.ts';

/** How long a round may work without giving others a turn. */
const MAX_BLOCKING_MS = 5;

export interface ReconcileContextParts {
  readonly settings: FleetSettings;
  readonly hypervisors: ReadonlyMap<string, Hypervisor>;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Journal;
  readonly records: Records;
  readonly authority: WriteAuthority;
  readonly state: DriverState;
  /** Fresh ones only: a region that is not in here decides nothing. */
  readonly views: ReadonlyMap<string, RegionView>;
  readonly cluster?: Cluster | undefined;
  readonly clusterReading: ClusterReading;
}

export interface JournalNote {
  readonly kind: JournalKind;
  readonly subject: JournalSubject;
  readonly reason: string;
  readonly message: string;
  readonly numbers?: Readonly<Record<string, number | string>>;
}

export class ReconcileContext {
  readonly settings: FleetSettings;
  readonly records: Records;
  readonly state: DriverState;
  readonly random: Random;
  readonly clock: Clock;
  readonly views: ReadonlyMap<string, RegionView>;
  /** To act on; what may be decided on is in `sight`. Undefined without access to Kubernetes. */
  readonly cluster: Cluster | undefined;
  readonly clusterReading: ClusterReading;
  /** Of each region a VM that may be ours and could not be read: nobody knows its addresses. */
  readonly unreadVms = new Map<string, VmSummary>();
  /** What the sources of pools name, by region and source. */
  readonly templates = new Map<string, Promise<readonly Template[]>>();
  readonly #parts: ReconcileContextParts;
  #breathedAt: number;

  constructor(parts: ReconcileContextParts) {
    this.#parts = parts;
    this.settings = parts.settings;
    this.records = parts.records;
    this.state = parts.state;
    this.random = parts.random;
    this.clock = parts.clock;
    this.views = parts.views;
    this.cluster = parts.cluster;
    this.clusterReading = parts.clusterReading;
    this.#breathedAt = parts.clock.monotonic();
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

  isConfigured(region: string): boolean {
    return this.#parts.hypervisors.has(region) && this.settings.regions[region] !== undefined;
  }

  /** A VM as its region's view shows it. */
  vmInView({ region, vmId }: Pick<Placement, 'region' | 'vmId'>): VmSummary | undefined {
    const view = this.views.get(region);
    return view === undefined ? undefined : vmsById(view).get(vmId);
  }

  /** For calls that only look. */
  get readOptions(): CallOptions {
    return { signal: this.#parts.authority.signal };
  }

  /** For calls that change something: asked for right before each, since the lease may have passed on. */
  get writeOptions(): CallOptions {
    const { authority } = this.#parts;
    const { lease, signal } = authority;
    if (signal?.aborted === true || !authority.mayAct()) {
      throw new LostLeadership('LEASE_LOST', `${lease.holder} no longer holds ${lease.name}`);
    }
    return { signal };
  }

  /**
   * A turn for timers and sockets, when it is time for one: a round over thousands of machines would otherwise keep
   * every caller of this process waiting until it ends.
   */
  async yieldToEventLoop(): Promise<void> {
    if (this.clock.monotonic() - this.#breathedAt < MAX_BLOCKING_MS) return;
    await this.clock.sleep(1).catch(() => undefined);
    this.#breathedAt = this.clock.monotonic();
  }

  async record({ numbers, ...telling }: JournalNote): Promise<void> {
    const entry = { at: this.now, ...telling, ...(numbers !== undefined && { numbers }) };
    await this.#parts.journal.append(entry);
    this.#emit(entry);
  }

  /** Nobody waits for an Event, and nothing depends on one. */
  #emit(entry: JournalEntry): void {
    if (this.cluster === undefined) return;
    const { node } = entry.subject;
    const nodeUid = knownNodes(this.clusterReading).find(({ name }) => name === node)?.uid;
    const { namespace } = this.settings;
    const event = eventOf(entry, { namespace, nodeUid });
    if (event !== undefined) this.cluster.emit(event).catch(() => undefined);
  }

  /** Forgets the oldest entries of the journal. */
  async pruneJournal(rule: { readonly beforeMs: number; readonly keep: number }): Promise<void> {
    await this.#parts.journal.prune(rule);
  }

  /** Says it once, until something else is said about the same subject. */
  async recordOnce(about: string, telling: JournalNote): Promise<void> {
    const words = `${telling.reason} ${telling.message}`;
    if (this.state.recorded.get(about) === words) return;
    this.state.recorded.set(about, words);
    await this.record(telling);
  }

  recordMachine(machine: Machine, telling: Omit<JournalNote, 'subject'>): Promise<void> {
    return this.record({ ...telling, subject: subjectOf(machine) });
  }
}

export function subjectOf({ id, pool, placement, nodeName }: Machine): JournalSubject {
  return {
    pool,
    machine: id,
    ...(nodeName !== undefined && { node: nodeName }),
    ...(placement !== undefined && { host: placement.host, region: placement.region }),
  };
}
