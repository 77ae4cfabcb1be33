// SPDX-License-Identifier: Apache-2.0
// What is known of a region at the time of the choice.
import type { Host } from '../../model/host.ts';
import { type Machine, mayExist, type Phase } from '../../model/machine.ts';

/** A VM of anybody, by configuration. */
export interface VmFacts {
  readonly vmId: number;
  readonly host: string;
  readonly power: 'running' | 'stopped' | 'unknown';
  readonly isTemplate: boolean;
  /** Undefined while it is being made. A stranger's then counts nothing yet: no host is closed for it. */
  readonly cpus: number | undefined;
  readonly memoryBytes: number | undefined;
}

/**
 * What a machine of ours was promised, seen on Proxmox or not. One that is seen counts once, with the larger of
 * the two sizes: a fresh clone still shows the size of its template.
 */
export interface Reservation {
  readonly vmId: number;
  readonly pool: string;
  readonly host: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly storage: string;
  /** What the free space of the storage does not show yet. */
  readonly pendingDiskBytes: number;
}

/** What is given away of a host. */
export interface HostTally {
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Of these, what is only taken if VMs that stand still count too. */
  readonly stoppedCpus: number;
  readonly stoppedMemoryBytes: number;
  /** VMs of anybody, stopped ones too, templates not. */
  readonly vms: number;
  /** Machines of ours by pool. */
  readonly pools: ReadonlyMap<string, number>;
}

export interface RegionFacts {
  readonly hosts: readonly Host[];
  readonly vms: readonly VmFacts[];
  readonly reservations: readonly Reservation[];
  /** Hosts with as many creations under way as they may have. */
  readonly busyHosts?: readonly string[] | undefined;
  /**
   * What VMs and reservations take of the hosts, where somebody keeps count. Then `vms` is not asked, and of the
   * reservations only those with a disk to come.
   */
  readonly ledger?: { tally(host: string): HostTally | undefined } | undefined;
}

/** Phases in which the free space of a storage does not show the disk yet. */
export const DISK_IN_THE_MAKING: readonly Phase[] = ['placed', 'creating', 'configuring'];

type Promised = Pick<Machine, 'pool' | 'phase' | 'size' | 'placement'>;

/** Of all machine records, what those of one region hold. */
export function reservationsOf(
  machines: readonly Promised[],
  region: string,
): readonly Reservation[] {
  return machines.flatMap((machine) => reservationOf(machine, region) ?? []);
}

/** Undefined when it holds nothing there. */
export function reservationOf(
  { pool, phase, size, placement }: Promised,
  region: string,
): Reservation | undefined {
  if (placement === undefined || placement.region !== region || !mayExist(phase)) return undefined;
  const { vmId, host, diskStorage } = placement;
  return {
    vmId,
    pool,
    host,
    cpus: size.cpu,
    memoryBytes: size.memoryBytes,
    storage: diskStorage,
    pendingDiskBytes: DISK_IN_THE_MAKING.includes(phase) ? size.diskBytes : 0,
  };
}
