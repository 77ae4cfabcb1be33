// SPDX-License-Identifier: Apache-2.0
// What is to be placed, and by which rules.
import type { MachineSize } from '../../model/machine.ts';

export const STRATEGIES = ['spread', 'pack', 'most-free', 'least-vms'] as const;

export type Strategy = (typeof STRATEGIES)[number];

/** An empty `allow` allows every host; `deny` wins over `allow`. */
export interface HostFilter {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** A pool's placement settings. */
export interface PlacementRules {
  readonly strategy: Strategy;
  /** Narrows the hosts of the region for this pool. */
  readonly hosts: HostFilter;
  /** Factors count to six decimals. */
  readonly cpuOvercommit: number;
  readonly memoryOvercommit: number;
  readonly memoryReserveBytes: number;
}

export interface Template {
  readonly vmId: number;
  readonly host: string;
  /** Storage of its disk. If it is shared, the template can be cloned to every host that has it. */
  readonly storage: string;
}

/** Where the disk of the new VM comes from. */
export type Source =
  | {
      readonly kind: 'image';
      /** Storage that images are imported from. */
      readonly storage: string;
      /** Hosts where the image is; absent: it is fetched where it is needed. */
      readonly presentOn?: readonly string[] | undefined;
    }
  | {
      readonly kind: 'template';
      readonly templates: readonly Template[];
      /** A linked clone's disk is bound to the storage of its template. */
      readonly clone: 'full' | 'linked';
    }
  | { readonly kind: 'netboot' };

export interface PlacementRequest {
  readonly pool: string;
  /** What the VM gets, overhead included; vCPUs are cores × sockets. */
  readonly size: MachineSize;
  readonly source: Source;
  /** Storages for disks; of several, the one with most room. Linked clones do not ask for it. */
  readonly storages: readonly string[];
  /** Absent: the machine needs no seed ISO. */
  readonly seedStorage?: string | undefined;
  readonly regionHosts: HostFilter;
  readonly placement: PlacementRules;
  /** False: what stands still and is not ours takes nothing of its host. */
  readonly countsStopped?: boolean | undefined;
  /** Storages whose disks take what is written, not what is promised: counted by total, not by free space. */
  readonly thinStorages?: readonly string[] | undefined;
}
