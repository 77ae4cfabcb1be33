// SPDX-License-Identifier: Apache-2.0
// The facts about a region that a placement decision uses.

import type { Host } from '../../model/host.ts';
import { type Machine, mayHaveVm, type Phase } from '../../model/machine.ts';
import { isTemplateGroup } from '../../model/role.ts';

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
  /** Hosts whose free storage space could not be read: the space in `hosts` may be too high, so none is used. */
  readonly unreadHosts?: readonly string[] | undefined;
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
  // A template runs never.
  if (phase === 'ready' && isTemplateGroup(pool)) return undefined;
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

// Exact multiplication and formatting of amounts.

const FACTOR_UNIT = 1_000_000;
const GIB = 2 ** 30;
const MIB = 2 ** 20;

/**
 * `value` × `factor`, rounded down, without floating point error; the factor is precise to six decimals. In
 * floating point 1.15 × 100 is 114.99…, and a machine that fits would be refused.
 */
export function multiplyExact(value: number, factor: number): number {
  const scaled = BigInt(Math.round(factor * FACTOR_UNIT));
  return Number((BigInt(value) * scaled) / BigInt(FACTOR_UNIT));
}

/** Available bytes, rounded down, so that the text never shows more than there is. */
export function formatFreeBytes(bytes: number): string {
  return formatBinary(Math.max(bytes, 0), Math.floor);
}

/** Needed bytes, rounded up, so that needed and free never show the same text when they do not fit. */
export function formatNeededBytes(bytes: number): string {
  return formatBinary(bytes, Math.ceil);
}

function formatBinary(bytes: number, round: (value: number) => number): string {
  const [unit, name] = bytes >= GIB ? [GIB, 'GiB'] : [MIB, 'MiB'];
  return `${round((bytes * 10) / unit) / 10} ${name}`;
}

/** How many times `need` fits into `free`. */
export function countFits(free: number, need: number): number {
  if (free < 0) return 0;
  return need === 0 ? Number.POSITIVE_INFINITY : (free - (free % need)) / need;
}
