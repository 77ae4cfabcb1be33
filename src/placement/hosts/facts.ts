// SPDX-License-Identifier: Apache-2.0
// The facts about a region that a placement decision uses.
import type { Host } from '../../model/host.ts';
import { type Machine, mayHaveVm, type Phase } from '../../model/machine.ts';

/** A VM, managed or unmanaged, by its configuration. */
export interface VmFacts {
  readonly vmId: number;
  readonly host: string;
  readonly power: 'running' | 'stopped' | 'unknown';
  readonly isTemplate: boolean;
  /**
   * Undefined while the VM is being created. An unmanaged VM then counts as 0, so that it does not block its
   * host.
   */
  readonly cpus: number | undefined;
  readonly memoryBytes: number | undefined;
}

/**
 * What is reserved for a machine, whether or not its VM exists yet. An existing VM is counted once, with the
 * larger of the two sizes: a new clone still has the size of its template.
 */
export interface Reservation {
  readonly vmId: number;
  readonly pool: string;
  readonly host: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly storage: string;
  /** Disk space that is reserved but not yet allocated on the storage. */
  readonly pendingDiskBytes: number;
}

/** What is allocated on a host. */
export interface HostAllocation {
  readonly cpus: number;
  readonly memoryBytes: number;
  /** The part of `cpus` that is allocated to stopped unmanaged VMs; `stoppedMemoryBytes` likewise. */
  readonly stoppedCpus: number;
  readonly stoppedMemoryBytes: number;
  /** All VMs, including stopped and unmanaged ones, except templates. */
  readonly vms: number;
  /** Managed machines by pool. */
  readonly pools: ReadonlyMap<string, number>;
}

export interface RegionFacts {
  readonly hosts: readonly Host[];
  readonly vms: readonly VmFacts[];
  readonly reservations: readonly Reservation[];
  /** Hosts that run their maximum number of concurrent creations. */
  readonly busyHosts?: readonly string[] | undefined;
  /**
   * Allocations by host, if the caller tracks them. Then `vms` is not used, and `reservations` only for pending
   * disks.
   */
  readonly allocations?: { allocationOf(host: string): HostAllocation | undefined } | undefined;
}

/** Phases in which the machine's disk may not be allocated on the storage yet. */
export const DISK_PENDING_PHASES: readonly Phase[] = ['placed', 'creating', 'configuring'];

type ReservingMachine = Pick<Machine, 'pool' | 'phase' | 'size' | 'placement'>;

/** The reservations of a region's machines. */
export function reservationsOf(
  machines: readonly ReservingMachine[],
  region: string,
): readonly Reservation[] {
  return machines.flatMap((machine) => reservationOf(machine, region) ?? []);
}

/** Returns undefined if the machine holds nothing in the region. */
export function reservationOf(
  { pool, phase, size, placement }: ReservingMachine,
  region: string,
): Reservation | undefined {
  if (placement === undefined || placement.region !== region || !mayHaveVm(phase)) return undefined;
  const { vmId, host, diskStorage } = placement;
  return {
    vmId,
    pool,
    host,
    cpus: size.cpu,
    memoryBytes: size.memoryBytes,
    storage: diskStorage,
    pendingDiskBytes: DISK_PENDING_PHASES.includes(phase) ? size.diskBytes : 0,
  };
}
