// SPDX-License-Identifier: Apache-2.0
// The decision as data: where the machine goes, and why not on each other host.
import type { MachineSize } from '../../model/machine.ts';

/** Error codes, except HOSTS_BUSY: that is not an error, the machine waits until a creation ends. */
export type RefusalCode =
  | 'HOSTS_BUSY'
  | 'NO_HOST_FITS'
  | 'NO_STORAGE_SPACE'
  | 'VIEW_STALE'
  | 'TEMPLATE_NOT_FOUND'
  | 'VOLUME_NOT_FOUND'
  | 'STORAGE_NOT_FOUND'
  | 'PERMISSION_MISSING'
  | 'HOST_NOT_FOUND';

/**
 * Reasons to refuse a host, ordered from nearly placed to impossible. The reason nearest to a placement
 * determines the code of the whole refusal, because that is what an operator has to change. For example, a
 * template missing on one host does not matter if another host has it and only lacks memory.
 */
const CODE_BY_REASON = {
  HostBusy: 'HOSTS_BUSY',
  NotEnoughMemory: 'NO_HOST_FITS',
  NotEnoughCpu: 'NO_HOST_FITS',
  NotEnoughDisk: 'NO_STORAGE_SPACE',
  StoragesUnread: 'VIEW_STALE',
  TooFewCpus: 'NO_HOST_FITS',
  TemplateMissing: 'TEMPLATE_NOT_FOUND',
  ImageMissing: 'VOLUME_NOT_FOUND',
  PrivilegeMissing: 'PERMISSION_MISSING',
  StorageRefusesContent: 'STORAGE_NOT_FOUND',
  StorageInactive: 'STORAGE_NOT_FOUND',
  StorageMissing: 'STORAGE_NOT_FOUND',
  HostOffline: 'NO_HOST_FITS',
  HostDenied: 'HOST_NOT_FOUND',
  HostNotAllowed: 'HOST_NOT_FOUND',
  HostUnknown: 'HOST_NOT_FOUND',
} as const satisfies Record<string, RefusalCode>;

export type RefusalReason = keyof typeof CODE_BY_REASON;

// Object.entries types its keys as strings only.
const REASON_CODES: readonly (readonly [string, RefusalCode])[] = Object.entries(CODE_BY_REASON);

/** All reasons to refuse a host, nearest to a placement first. */
export const REFUSAL_REASONS: readonly string[] = Object.keys(CODE_BY_REASON);

export type ReasonNumbers = Readonly<Record<string, number | string>>;

/** What strategies compare. */
// oxlint-disable-next-line typescript/consistent-type-definitions -- an interface is not assignable to ReasonNumbers
export type OfferNumbers = {
  readonly memoryFreeBytes: number;
  readonly cpusFree: number;
  readonly diskFreeBytes: number;
  readonly vms: number;
  readonly poolMachines: number;
};

export interface HostReason<Reason extends string> {
  readonly host: string;
  readonly reason: Reason;
  /** For people, including the numbers behind the decision. */
  readonly message: string;
  readonly numbers: ReasonNumbers;
}

/** One host may be refused for several reasons at once. */
export type HostRefusal = HostReason<RefusalReason>;

export interface Placed {
  readonly placed: true;
  readonly host: string;
  readonly storage: string;
  /** The template to clone, if the source is a template. */
  readonly template?: { readonly vmId: number; readonly host: string };
  readonly message: string;
  readonly numbers: OfferNumbers;
  /** Refused hosts, and hosts that fit but were not preferred. */
  readonly others: readonly HostReason<RefusalReason | 'AnotherPreferred'>[];
}

export interface NotPlaced {
  readonly placed: false;
  readonly code: RefusalCode;
  readonly message: string;
  readonly refusals: readonly HostRefusal[];
}

export type HostDecision = Placed | NotPlaced;

export function notPlaced(unsorted: readonly HostRefusal[]): NotPlaced {
  const refusals = unsorted.toSorted(compareHosts);
  const [first] = REASON_CODES.flatMap(([name, code]) =>
    refusals.filter(({ reason }) => reason === name).map(({ message }) => ({ code, message })),
  );
  return {
    placed: false,
    code: first?.code ?? 'HOST_NOT_FOUND',
    message: first?.message ?? 'the region has no host',
    refusals,
  };
}

/** Compares by code unit, so that the order does not depend on the locale. */
export function compareNames(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

export function compareHosts(
  left: { readonly host: string },
  right: { readonly host: string },
): number {
  return compareNames(left.host, right.host);
}

// The placement request: what to place, and by which rules.

export const STRATEGIES = ['spread', 'pack', 'most-free', 'least-vms'] as const;

export type Strategy = (typeof STRATEGIES)[number];

/** An empty `allow` allows every host; `deny` takes precedence over `allow`. */
export interface HostFilter {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** A pool's placement settings. */
export interface PlacementRules {
  readonly strategy: Strategy;
  /** Restricts the region's hosts for this pool. */
  readonly hosts: HostFilter;
  /** Overcommit factors are precise to six decimals. */
  readonly cpuOvercommit: number;
  readonly memoryOvercommit: number;
  readonly memoryReserveBytes: number;
}

export interface Template {
  readonly vmId: number;
  readonly host: string;
  /** Storage of its disk. A template on shared storage can be cloned to every host that has the storage. */
  readonly storage: string;
}

/** The source of the new VM's disk. */
export type Source =
  | {
      readonly kind: 'image';
      /** Storage that images are imported from. */
      readonly storage: string;
      /** Hosts that have the image. Absent: it is downloaded where it is needed. */
      readonly presentOn?: readonly string[] | undefined;
    }
  | {
      readonly kind: 'template';
      readonly templates: readonly Template[];
      /** A linked clone's disk must be on the storage of its template. */
      readonly clone: 'full' | 'linked';
    }
  | { readonly kind: 'netboot' };

export interface PlacementRequest {
  readonly pool: string;
  /** Size of the VM, overhead included. vCPUs are cores × sockets. */
  readonly size: MachineSize;
  readonly source: Source;
  /** Storages for disks; the one with the most free space is chosen. Not used by linked clones. */
  readonly storages: readonly string[];
  /** Absent: the machine needs no seed ISO. */
  readonly seedStorage?: string | undefined;
  readonly regionHosts: HostFilter;
  readonly placement: PlacementRules;
  /** False: stopped unmanaged VMs do not count against their host. */
  readonly countsStopped?: boolean | undefined;
  /** Thin storages: disks occupy only what is written, so they are limited by total size, not by free space. */
  readonly thinStorages?: readonly string[] | undefined;
}
