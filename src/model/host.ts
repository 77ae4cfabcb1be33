// SPDX-License-Identifier: Apache-2.0
// A host is one Proxmox VE node. ("Node" always means a Kubernetes Node.)

export interface HostStorage {
  readonly name: string;
  readonly shared: boolean;
  readonly active: boolean;
  /** Content types the storage accepts: images, iso, import, … */
  readonly content: readonly string[];
  readonly totalBytes: number;
  readonly freeBytes: number;
}

export interface Host {
  readonly region: string;
  readonly name: string;
  /** False also while its state is unknown: nothing is placed on a host that may not be there. */
  readonly online: boolean;
  /** Logical CPUs. */
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly storages: readonly HostStorage[];
}

/** What one VM takes of its host by configuration, whether it runs or not. Momentary use decides nothing. */
export interface Allocation {
  readonly vmId: number;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly running: boolean;
  readonly isTemplate: boolean;
}
