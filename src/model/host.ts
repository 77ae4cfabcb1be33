// SPDX-License-Identifier: Apache-2.0
// A host is one Proxmox VE node. ("Node" always means a Kubernetes Node.)

export interface HostStorage {
  readonly name: string;
  readonly shared: boolean;
  readonly active: boolean;
  /** Content types that the storage accepts: images, iso, import, … */
  readonly content: readonly string[];
  readonly totalBytes: number;
  readonly freeBytes: number;
}

export interface Host {
  readonly region: string;
  readonly name: string;
  /** Also false while the host's state is unknown, so that nothing is placed on it. */
  readonly online: boolean;
  /** Logical CPUs. */
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly storages: readonly HostStorage[];
  /** Privileges whose lack hides something of the region, as in `Datastore.Audit on /storage/local`. */
  readonly missingPrivileges?: readonly string[];
}
