// SPDX-License-Identifier: Apache-2.0
// What the engine is told: complete, valid, readonly. Whoever reads the config file makes it.
import type { LoginInput, PoolInput } from '../../bootstrap/index.ts';
import type { MachineSize } from '../../model/machine.ts';
import type { FamilyRule, HostFilter, PlacementRules } from '../../placement/index.ts';
import type { DiskOptions } from '../../ports/hypervisor.ts';
import type { JoinSettings } from './join-settings.ts';

export interface RegionSettings {
  readonly name: string;
  readonly hosts: HostFilter;
  readonly vmIds: { readonly from: number; readonly to: number };
  readonly storage: {
    readonly images: string;
    readonly seeds: string;
    readonly disks: readonly string[];
  };
  readonly limits: { readonly createsPerHost: number; readonly createsPerStorage: number };
  /** The managed tag first. For people and lists; they prove nothing. */
  readonly tags: readonly string[];
  readonly resourcePool: string | undefined;
  readonly taskTimeoutMs: number;
}

export interface ImageSettings {
  readonly url: string;
  readonly format: 'qcow2' | 'raw' | 'vmdk';
  readonly checksum: { readonly algorithm: 'sha256' | 'sha512'; readonly hex: string } | undefined;
  readonly verifyCertificates: boolean;
}

export type SourceSettings =
  | ({ readonly kind: 'image' } & ImageSettings)
  | {
      readonly kind: 'template';
      readonly id: number | undefined;
      readonly idByHost: Readonly<Record<string, number>>;
      readonly name: string | undefined;
      readonly clone: 'full' | 'linked';
    }
  | { readonly kind: 'netboot' };

export interface InterfaceSettings {
  readonly model: string;
  readonly bridge: string;
  readonly vlan: number | undefined;
  readonly mtu: number | undefined;
  readonly queues: number | undefined;
  readonly macPrefix: string | undefined;
  readonly firewall: boolean;
}

export interface NetworkSettings {
  readonly interfaces: readonly InterfaceSettings[];
  readonly v4: FamilyRule;
  readonly v6: FamilyRule;
  readonly dns: readonly string[];
  readonly search: readonly string[];
}

/** What the seed says beside the machine's own facts; absent: the VM gets none. */
export interface SeedSettings {
  readonly registration: PoolInput;
  readonly login: LoginInput;
  readonly preinstalled: boolean;
  readonly join: JoinSettings;
}

/** A size that has a name in the config. */
export interface NamedSize extends MachineSize {
  readonly name: string;
}

export interface PoolSettings {
  readonly name: string;
  /** The first that has room gets the machine. */
  readonly regions: readonly string[];
  readonly source: SourceSettings;
  /** Of machines that nobody asked for in another size. */
  readonly size: MachineSize;
  /** What Kubernetes calls a machine of that size. */
  readonly instanceTypes: readonly NamedSize[];
  readonly memoryOverheadBytes: number;
  readonly balloonBytes: number;
  readonly names: {
    readonly prefix: string;
    readonly role: string | undefined;
    readonly suffix: 'id' | 'ordinal';
  };
  readonly limits: {
    readonly min: number;
    readonly max: number;
    /** Of all machines together; 0 = no limit. */
    readonly cpu: number;
    readonly memoryBytes: number;
  };
  readonly network: NetworkSettings;
  readonly disk: DiskOptions & { readonly storage: string | undefined };
  /** Further VM options, already validated. */
  readonly options: Readonly<Record<string, string>>;
  readonly placement: PlacementRules;
  /** Whether its machines become Nodes. */
  readonly joins: boolean;
  /** Key of the label that names the pool on its Nodes. */
  readonly groupLabel: string;
  readonly provisionTimeoutMs: number;
  /** From a guest that is up to its Node. */
  readonly registrationTimeoutMs: number;
  readonly deletion: {
    readonly mode: 'shutdown' | 'stop';
    readonly shutdownTimeoutMs: number;
  };
  readonly seed: SeedSettings | undefined;
}

export interface FleetSettings {
  /** UID of the kube-system namespace, or an id generated once. */
  readonly cluster: string;
  /** Who drives; unique per process start. */
  readonly holder: string;
  readonly regions: Readonly<Record<string, RegionSettings>>;
  readonly pools: Readonly<Record<string, PoolSettings>>;
  readonly backoff: { readonly initialMs: number; readonly maxMs: number };
  /** How long a machine's VM must have been missing before the machine is given up. */
  readonly lostAfterMs: number;
  /** The same for its Node, where the VM is there: a kubelet that registers anew takes a while. */
  readonly nodeLostAfterMs: number;
  /** What belongs to no machine that is known: told, or removed. */
  readonly orphans: 'report' | 'delete';
  /** A cloud controller sets provider ids and removes Nodes: we do neither. */
  readonly cloudController: boolean;
  /** Where Events go that are about no Node. */
  readonly namespace: string;
  /** How long a machine may wait for a place before it has failed; absent: for ever. */
  readonly unplacedTimeoutMs?: number | undefined;
  /** A request to Proxmox that changes something is over after this; absent: the default is not exceeded. */
  readonly maxRequestMs?: number | undefined;
  readonly reconcileMs: number;
  /** Between rounds while something is under way. */
  readonly busyMs: number;
}
