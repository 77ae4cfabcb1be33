// SPDX-License-Identifier: Apache-2.0
// What the driver keeps in memory between passes. It saves requests and repeated journal entries; losing it loses
// nothing else. Times are on the monotonic clock unless they say otherwise: what is measured here must not depend on
// changes of the wall clock.
import type { Machine, MachineId } from '../../model/machine.ts';
import type { BootstrapToken, ClusterNode } from '../../ports/cluster.ts';
import type { PvescalerError } from '../../ports/errors.ts';
import type { TaskRef } from '../../ports/hypervisor.ts';
import { DriverTime } from './driver-time.ts';
import { BootTimes, TaskPolling } from './polling.ts';
import type { RegionReading } from './region-views.ts';
import type { ComparedRegions } from './same-proxmox.ts';
import type { PoolSettings } from './settings.ts';

/** Addresses in a VM's configuration. */
export interface KnownAddresses {
  /** `vmFingerprint` at the time of the read. */
  readonly fingerprint: string;
  readonly readAt: number;
  readonly addresses: readonly string[];
}

interface KnownTemplate {
  /** `vmFingerprint` at the time of the read. */
  readonly fingerprint: string;
  readonly readAt: number;
  readonly storage: string | undefined;
}

/** Free space of a host's storages. */
export interface StorageReading {
  readonly readAt: number;
  /** Usable bytes, and what the view estimated at the time of the read, by storage. */
  readonly storages: ReadonlyMap<
    string,
    { readonly availableBytes: number; readonly estimatedBytes: number }
  >;
}

interface ImageDownload {
  /** Undefined until Proxmox has answered. */
  readonly task: TaskRef | undefined;
  readonly polledAt: number;
}

export class DriverState {
  /** Machines that are not reconciled until then, after an error. */
  readonly backoffs = new Map<string, { readonly until: number; readonly count: number }>();
  /** The last journal entry about a subject, so that it is not repeated. */
  readonly recorded = new Map<string, string>();
  /** Since when a ready machine's VM has been missing. */
  readonly missingSince = new Map<string, number>();
  /** Since when a ready machine's VM has been stopped; set when it is recorded. */
  readonly stoppedSince = new Map<string, number>();
  /** Restarts of a ready machine that stops again and again, and when the next one is allowed. */
  readonly restarts = new Map<string, { readonly notBefore: number; readonly count: number }>();
  /** Machines whose VM is being destroyed, until the task is recorded. */
  readonly destroying = new Set<string>();
  /** Machines that are ready to be destroyed and wait for other deletions on their host or storage. */
  readonly awaitingDestroy = new Set<string>();
  /** Image downloads in progress, by storage and volume. */
  readonly downloads = new Map<string, ImageDownload>();
  /** Image checks in progress, shared by all machines of a host that wait for the same image. */
  readonly imageChecks = new Map<string, Promise<boolean>>();
  /** VMs that were inspected and are not ours, with their `vmFingerprint`. */
  readonly unmanaged = new Map<string, string>();
  /** What an inspection found about VMs without a record, by region and VM id, unless they are unmanaged. */
  readonly inspected = new Map<string, 'unread' | 'undecided' | 'half-made' | 'orphaned'>();
  /** VMs without a record that a person has to decide about, by region and VM id; see `recordUnmanaged`. */
  readonly leftAlone = new Map<string, 'damaged-marker' | 'vm-left-alone'>();
  /** How many seeds without a machine the last sweep left, by region and host. */
  readonly seedsLeft = new Map<string, { readonly region: string; readonly count: number }>();
  /** Machines whose VM is being adopted: a second VM of one of them waits. */
  readonly adopting = new Set<MachineId>();
  /** Machines that were requested in the time of an earlier driver, see unknown-vms.ts. Undefined until the first pass. */
  requestedBefore: Set<string> | undefined;
  /** Regions of which every VM has been identified since the first pass. */
  readonly identifiedRegions = new Set<string>();
  /** Orphaned VMs that are being removed. */
  get orphanedVms(): number {
    return [...this.inspected.values()].filter((finding) => finding === 'orphaned').length;
  }
  /** The running task of the removal of an orphaned VM, by region and VM id. */
  readonly orphanTasks = new Map<string, TaskRef>();
  /** VM ids that Proxmox refused as taken, by region, with the time. */
  readonly refusedVmIds = new Map<string, Map<number, number>>();
  /** Storages on which a creation found no space, with the time; see `storageKey`. */
  readonly fullStorages = new Map<string, number>();
  /** Machines that are to be placed again because their storage is full. */
  readonly noSpaceErrors = new Map<string, PvescalerError>();
  /** Since when the owner of a machine's VM cannot be determined. */
  readonly ownerUnknownSince = new Map<string, number>();
  /** The same for VMs without a record that are being created, by region and VM id. */
  readonly incompleteSince = new Map<string, number>();
  /** Addresses of VMs without a record, by region and VM id. */
  readonly addresses = new Map<string, KnownAddresses>();
  /** Machines and hosts whose guest agents are not asked for addresses before that time, see guest-addresses.ts. */
  readonly addressReads = new Map<string, { readonly notBefore: number; readonly count: number }>();
  /** Storage of the boot disk of templates, by region and VM id; undefined for a template without one. */
  readonly templates = new Map<string, KnownTemplate>();
  /** Whether the credentials lack a privilege, see missing-privileges.ts. */
  readonly privileges = new Map<string, { readonly readAt: number; readonly isMissing: boolean }>();
  /** The last reading of the storages of each host, by region and host. */
  readonly storages = new Map<string, StorageReading>();
  /** Hosts whose storages are being read, or could not be: not read again before this time. */
  readonly storageReads = new Map<string, number>();
  /** Wall clock of the last fresh view of each region. */
  readonly seenAt = new Map<string, number>();
  readonly bootTimes = new BootTimes();
  readonly taskPolling = new TaskPolling();
  /** Seeds being deleted, by machine. */
  readonly seedRemovals = new BackgroundTasks();
  /** Machines in phase `requested` that the last placement found no host for. */
  unplaced: ReadonlySet<string> = new Set();
  /** The last view of each region, and the read in progress. */
  readonly regionReadings = new Map<string, RegionReading>();
  readonly comparedRegions: ComparedRegions = new Map();
  /** The last time that the cluster could not be read, or was read for the first time. */
  clusterStaleAt = Number.NEGATIVE_INFINITY;
  /** Wall clock of its last update. */
  clusterSeenAt: number | undefined;
  lastNodes: readonly ClusterNode[] = [];
  /** Rounds in which a drain has waited for the same pods or volumes. */
  readonly drainWaits = new Map<string, number>();
  /** Nodes that need no change, with the machine record and the pool they were compared with. */
  readonly settledNodes = new WeakMap<
    ClusterNode,
    { readonly machine: Machine; readonly pool: PoolSettings }
  >();
  /** Since when the Node of a ready machine has been missing. */
  readonly nodeMissingSince = new Map<string, number>();
  /** When so many machines of a pool were last found lost that none is deleted. */
  readonly heldBackAt = new Map<string, number>();
  /** Since when a Node has been without a VM, by uid. */
  readonly orphanedSince = new Map<string, number>();
  /** Join tokens of machines that have not started yet. Secret; kept nowhere else. */
  readonly tokens = new Map<string, BootstrapToken>();
  readonly joinedByAgent = new Set<string>();
  /** Labels of a machine's Node that another field manager owns, with their values when that was found out. */
  readonly contestedLabels = new Map<string, string>();
  /** When the zone of a machine's Node was last changed. */
  readonly zoneChangedAt = new Map<string, number>();
  /** How long drivers have been waiting since a time in a machine's record, see `TimedField`. */
  readonly driverTime: DriverTime;
  sweptAt = Number.NEGATIVE_INFINITY;
  prunedAt = Number.NEGATIVE_INFINITY;

  /** The same of missing VMs, for which time without a driver counts: commands end soon. */
  readonly missingTime: DriverTime;
  /**
   * `previousEndedAt`: wall clock of the last sign of the driver before this one. `missingTime`: of all drivers in this
   * process, so that it survives a lease that a change of the wall clock ends.
   */
  constructor(
    previousEndedAt = Number.POSITIVE_INFINITY,
    missingTime = new DriverTime(Number.POSITIVE_INFINITY),
  ) {
    this.driverTime = new DriverTime(previousEndedAt);
    this.missingTime = missingTime;
  }

  timeOf(field: TimedField): DriverTime {
    return field === 'missingSince' ? this.missingTime : this.driverTime;
  }

  /** A drain of the machine is over. */
  forgetDrain(id: string): void {
    this.drainWaits.delete(id);
    this.recorded.delete(`drain ${id}`);
  }

  /** Removes everything about a machine whose record is removed. */
  forget(id: string): void {
    const byMachine = [
      this.backoffs,
      this.recorded,
      this.missingSince,
      this.ownerUnknownSince,
      this.stoppedSince,
      this.restarts,
      this.awaitingDestroy,
      this.noSpaceErrors,
      this.nodeMissingSince,
      this.tokens,
      this.joinedByAgent,
      this.contestedLabels,
      this.zoneChangedAt,
      this.addressReads,
    ];
    for (const known of byMachine) known.delete(id);
    this.forgetDrain(id);
    for (const subject of ['node', 'labels', 'zone', 'vm', 'missing node'])
      this.recorded.delete(`${subject} ${id}`);
    this.seedRemovals.forget(id);
    this.requestedBefore?.delete(id);
    for (const field of TIMED_FIELDS) this.timeOf(field).forget(timeKey(id, field));
  }
}

/** Times in a machine's record from which something is counted. */
export type TimedField = (typeof TIMED_FIELDS)[number];
const TIMED_FIELDS = ['requestedAt', 'placedAt', 'phaseSince', 'missingSince', 'task'] as const;

/** Key of a `DriverTime`. */
export function timeKey(id: string, field: TimedField): string {
  return `${field} of ${id}`;
}

/**
 * Work that no handler waits for: one pass starts it, a later one takes its result. Only for work that may be started
 * again at any time.
 */
export class BackgroundTasks {
  readonly #tasks = new Map<string, 'running' | 'done' | Error>();

  /** Returns a result once. Throws the error that the task ended with. */
  takeResult(key: string): 'none' | 'running' | 'done' {
    const state = this.#tasks.get(key) ?? 'none';
    if (state !== 'running') this.#tasks.delete(key);
    if (state instanceof Error) throw state;
    return state;
  }

  isRunning(key: string): boolean {
    return this.#tasks.get(key) === 'running';
  }

  begin(key: string, work: Promise<void>): void {
    this.#tasks.set(key, 'running');
    const end = (state: 'done' | Error) => {
      if (this.#tasks.get(key) === 'running') this.#tasks.set(key, state);
    };
    work.then(
      () => end('done'),
      (error: unknown) => end(error instanceof Error ? error : new Error(String(error))),
    );
  }

  forget(key: string): void {
    this.#tasks.delete(key);
  }
}
