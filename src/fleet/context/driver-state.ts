// SPDX-License-Identifier: Apache-2.0
// What a process remembers from earlier rounds. It makes rounds cheaper and quieter; losing it loses nothing.
import type { BootstrapToken, ClusterNode } from '../../ports/cluster.ts';
import type { RegionView, TaskRef } from '../../ports/hypervisor.ts';
import { BackgroundTasks } from './background-tasks.ts';
import { Guests } from './guest-probes.ts';
import { Tempo } from './task-polling.ts';
import { WakeSignal } from './wake-signal.ts';

/** What a VM's configuration says of its addresses. */
export interface KnownAddresses {
  /** What the overview said of the VM when it was read. */
  readonly fingerprint: string;
  readonly readAt: number;
  readonly addresses: readonly string[];
}

export interface RegionViews {
  /** Fresh ones only. */
  readonly views: ReadonlyMap<string, RegionView>;
  /** Why the others could not be read. */
  readonly stale: Readonly<Record<string, string>>;
}

export class DriverState {
  /** Machines that are left alone until then, after trouble. */
  readonly backoffs = new Map<string, { readonly until: number; readonly count: number }>();
  /** The last reason told about a subject: told again only when it changes. */
  readonly recorded = new Map<string, string>();
  /** Since when a VM that should be there has not been seen. */
  readonly missingSince = new Map<string, number>();
  /** Image downloads under way, by where they go. */
  readonly downloads = new Map<string, TaskRef>();
  /** Looks at images under way, shared by all machines that wait for the same one. */
  readonly imageChecks = new Map<string, Promise<boolean>>();
  /** VMs that were looked at and are not ours, by what the overview said of them. */
  readonly unmanaged = new Map<string, string>();
  /** Addresses that configurations and markers of others name, by region and VM id. */
  readonly addresses = new Map<string, KnownAddresses>();
  /** Of each region the last fresh reading. */
  readonly seenAt = new Map<string, number>();
  /** Rung when something that no round waited for has come. */
  readonly wakeSignal = new WakeSignal();
  readonly guestProbes = new Guests(() => this.wakeSignal.wake());
  readonly taskPolling = new Tempo();
  /** Seeds being deleted, by machine. */
  readonly seedRemovals = new BackgroundTasks();
  /** The last views, for rounds that follow each other closely. */
  views: RegionViews | undefined;
  /** The last time that the cluster could not be read, or was read for the first time. */
  clusterStaleAt = Number.NEGATIVE_INFINITY;
  clusterSeenAt: number | undefined;
  lastNodes: readonly ClusterNode[] = [];
  /** Since when the Node of a ready machine has not been seen. */
  readonly nodeMissingSince = new Map<string, number>();
  /** Since when a Node has been without a VM, by uid. */
  readonly orphanedSince = new Map<string, number>();
  /** Join tokens of machines that have not started yet. Secret, and nowhere else. */
  readonly tokens = new Map<string, BootstrapToken>();
  readonly joinedByAgent = new Set<string>();
  /** Labels of a machine's Node that somebody else holds, and how they looked when it was found out. */
  readonly contestedLabels = new Map<string, string>();
  sweptAt = Number.NEGATIVE_INFINITY;
  prunedAt = Number.NEGATIVE_INFINITY;

  /** A machine that is over. */
  forget(id: string): void {
    const byMachine = [
      this.backoffs,
      this.recorded,
      this.missingSince,
      this.nodeMissingSince,
      this.tokens,
      this.joinedByAgent,
      this.contestedLabels,
    ];
    for (const known of byMachine) known.delete(id);
    for (const what of ['node', 'labels']) this.recorded.delete(`${what} ${id}`);
    this.guestProbes.forget(id);
    this.taskPolling.forget(id);
    this.seedRemovals.forget(id);
  }
}
