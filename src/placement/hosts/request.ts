// SPDX-License-Identifier: Apache-2.0
// The placement request: what to place, and by which rules.
import type { MachineSize } from '../../model/machine.ts';

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
