// SPDX-License-Identifier: Apache-2.0
// What a reconcile pass and the handlers of machines work with: records, a view of each region, the cluster, the
// lease, and the driver's state. Each pass makes a new one; handlers use the newest when they start.
import type { JournalEntry, JournalKind, JournalSubject } from '../../model/journal-entry.ts';
import type { Machine, Placement } from '../../model/machine.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Cluster, ClusterEvent } from '../../ports/cluster.ts';
import { Bug, LostLeadership, type PvescalerError } from '../../ports/errors.ts';
import type { CallOptions, Hypervisor, RegionView, VmSummary } from '../../ports/hypervisor.ts';
import type { Journal } from '../../ports/journal.ts';
import type { Random } from '../../ports/random.ts';
import type { Records } from '../records/records.ts';
import { type ClusterReading, knownNodes } from './cluster-reading.ts';
import type { WriteAuthority } from './driver-lease.ts';
import type { DriverState } from './driver-state.ts';
import type { CheckDrain } from './options.ts';
import type { FleetSettings, PoolSettings, RegionSettings } from './settings.ts';
import { vmsById } from './taken.ts';

/** How long a pass may block the event loop. */
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
  /** Fresh views only: a region that is not in here decides nothing. */
  readonly views: ReadonlyMap<string, RegionView>;
  readonly cluster?: Cluster | undefined;
  readonly clusterReading: ClusterReading;
  readonly checkDrain?: CheckDrain | undefined;
  readonly onBug?: ((error: PvescalerError, subject: string) => void) | undefined;
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
  /** For writes; decisions use `clusterReading`. Undefined without access to Kubernetes. */
  readonly cluster: Cluster | undefined;
  readonly checkDrain: CheckDrain | undefined;
  /** Replaced before each machine is reconciled: a pass may take long, and a read of the watch cache costs no request. */
  clusterReading: ClusterReading;
  /** Regions whose VMs are not all inspected, or with a VM that is being created or cannot be read. */
  readonly undecided: Set<string>;
  /** One VM per region that may be ours and could not be read: its addresses are unknown. */
  readonly unreadVms = new Map<string, VmSummary>();
  readonly #parts: ReconcileContextParts;
  #yieldedAt: number;

  constructor(parts: ReconcileContextParts) {
    this.#parts = parts;
    this.settings = parts.settings;
    this.records = parts.records;
    this.state = parts.state;
    this.random = parts.random;
    this.clock = parts.clock;
    this.views = parts.views;
    this.undecided = new Set(parts.views.keys());
    this.cluster = parts.cluster;
    this.checkDrain = parts.checkDrain;
    this.clusterReading = parts.clusterReading;
    this.#yieldedAt = parts.clock.monotonic();
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

  /** The VM in its region's view. */
  vmInView({ region, vmId }: Pick<Placement, 'region' | 'vmId'>): VmSummary | undefined {
    const view = this.views.get(region);
    return view === undefined ? undefined : vmsById(view).get(vmId);
  }

  /** Options for calls that only read. */
  get readOptions(): CallOptions {
    return { signal: this.#parts.authority.signal };
  }

  /** Options for one call that changes something. Throws LostLeadership; call it for every such call anew. */
  writeOptions(): CallOptions {
    const { authority } = this.#parts;
    const { lease, signal } = authority;
    if (signal?.aborted === true || !authority.mayAct()) {
      throw new LostLeadership('LEASE_LOST', `${lease.holder} no longer holds ${lease.name}`);
    }
    return { signal };
  }

  /**
   * Lets timers and sockets run when the pass has blocked the event loop for long enough. Otherwise a pass over
   * thousands of machines would delay every other caller in this process.
   */
  async yieldToEventLoop(): Promise<void> {
    if (this.clock.monotonic() - this.#yieldedAt < MAX_BLOCKING_MS) return;
    await this.clock.sleep(1).catch(() => undefined);
    this.#yieldedAt = this.clock.monotonic();
  }

  /** Appends to the journal, and emits an Event for the entries that `eventOf` selects. */
  async record({ numbers, ...note }: JournalNote): Promise<void> {
    const entry = { at: this.now, ...note, ...(numbers !== undefined && { numbers }) };
    await this.#parts.journal.append(entry);
    this.#emit(entry);
  }

  /** Not awaited: nothing depends on an Event. */
  #emit(entry: JournalEntry): void {
    if (this.cluster === undefined) return;
    const { node } = entry.subject;
    const nodeUid = knownNodes(this.clusterReading).find(({ name }) => name === node)?.uid;
    const { namespace } = this.settings;
    const event = eventOf(entry, { namespace, nodeUid });
    if (event !== undefined) this.cluster.emit(event).catch(() => undefined);
  }

  async pruneJournal(rule: { readonly beforeMs: number; readonly keep: number }): Promise<void> {
    await this.#parts.journal.prune(rule);
  }

  reportIfBug(error: PvescalerError, subject: string): void {
    if (error.class === 'Bug') this.#parts.onBug?.(error, subject);
  }

  /** Records a note unless the last note about the same subject was the same. */
  async recordOnce(subject: string, note: JournalNote): Promise<void> {
    const text = `${note.reason} ${note.message}`;
    if (this.state.recorded.get(subject) === text) return;
    this.state.recorded.set(subject, text);
    await this.record(note);
  }

  recordMachine(machine: Machine, note: Omit<JournalNote, 'subject'>): Promise<void> {
    return this.record({ ...note, subject: subjectOf(machine) });
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

// Which journal entries become Kubernetes Events: errors, refusals, and what a person who inspects a Node needs.

const WARNINGS = [
  'MachineLost',
  'MachineStopped',
  'NodeMissing',
  'NodeDiffers',
  'DrainBlocked',
  'DrainForced',
];
const EMITTED_REASONS = new Set([
  'MachineReady',
  'OrphanedNodeRemoved',
  'DrainStarted',
  'DrainCompleted',
  'DrainCancelled',
  'DrainUndone',
  ...WARNINGS,
]);

interface EventTarget {
  /** Namespace of Events that are not about a Node. */
  readonly namespace: string;
  readonly nodeUid: string | undefined;
}

function eventOf(
  { kind, subject, reason, message }: JournalEntry,
  { namespace, nodeUid }: EventTarget,
): ClusterEvent | undefined {
  const isProblem = kind === 'failed' || kind === 'refused';
  if (!isProblem && !EMITTED_REASONS.has(reason)) return undefined;
  const { node } = subject;
  return {
    regarding:
      node !== undefined && nodeUid !== undefined
        ? { kind: 'Node', name: node, uid: nodeUid }
        : { kind: 'Namespace', name: namespace },
    type: isProblem || WARNINGS.includes(reason) ? 'Warning' : 'Normal',
    reason: toCamelCase(reason),
    message,
  };
}

/** An entry's reason may be an error code; an Event's reason is one word in CamelCase. */
function toCamelCase(reason: string): string {
  if (!/^[A-Z]+(_[A-Z]+)*$/.test(reason)) return reason;
  return reason
    .toLowerCase()
    .replace(/(^|_)([a-z])/g, (_match, _gap: string, letter: string) => letter.toUpperCase());
}
