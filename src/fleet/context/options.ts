// SPDX-License-Identifier: Apache-2.0
import type { MachineId } from '../../model/machine.ts';
import type { Pod } from '../../model/pod.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Cluster, NodeRef } from '../../ports/cluster.ts';
import type { PvescalerError } from '../../ports/errors.ts';
import type { Hypervisor } from '../../ports/hypervisor.ts';
import type { Random } from '../../ports/random.ts';
import type { Store } from '../../ports/store.ts';
import type { DriverRegistry } from './driver-lease.ts';
import type { FleetSettings } from './settings.ts';

export interface DrainingNode {
  readonly machine: MachineId;
  readonly pool: string;
  readonly node: NodeRef;
  /** All pods on the node, read from the API server after the taint was set. */
  readonly pods: readonly Pod[];
}

export type DrainCheck = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/**
 * Whether the node can still be removed. Called after the taint, before the first eviction, and again when another pod
 * appears on the node. An error leaves the drain as it is, and the check is repeated later.
 */
export type CheckDrain = (
  node: DrainingNode,
  signal: AbortSignal | undefined,
) => Promise<DrainCheck>;

export interface FleetOptions {
  readonly store: Store;
  readonly hypervisors: ReadonlyMap<string, Hypervisor>;
  /** The cluster that machines join. Without it, a machine whose guest is up is ready. */
  readonly cluster?: Cluster | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: FleetSettings;
  /** Knows whether this process holds the lease; adapters check it before they send a changing request. */
  readonly driverRegistry?: DriverRegistry | undefined;
  /** Checks drains that the autoscaler requested. Without it they are undone before the first eviction. */
  readonly checkDrain?: CheckDrain | undefined;
  /** Receives an unexpected exception, which ends or delays only the work on `subject`. */
  readonly onBug?: ((error: PvescalerError, subject: string) => void) | undefined;
}
