// SPDX-License-Identifier: Apache-2.0
// The engine's settings: complete, valid and readonly.
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
  /** The managed tag first. For display and listing; a tag proves no ownership. */
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

/** Content of the seed beside the machine's own facts. Without it the VM gets no seed. */
export interface SeedSettings {
  readonly registration: PoolInput;
  readonly login: LoginInput;
  readonly preinstalled: boolean;
  readonly join: JoinSettings;
}

/** A size with a name in the config. */
export interface NamedSize extends MachineSize {
  readonly name: string;
}

export interface PoolSettings {
  readonly name: string;
  /** In order of preference: the first with capacity gets the machine. */
  readonly regions: readonly string[];
  readonly source: SourceSettings;
  /** Size of machines that are requested without one. */
  readonly size: MachineSize;
  /** Values of the instance-type label by size. */
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
    /** Sum over all machines; 0 = no limit. */
    readonly cpu: number;
    readonly memoryBytes: number;
  };
  readonly network: NetworkSettings;
  readonly disk: DiskOptions & { readonly storage: string | undefined };
  /** Further VM options, already validated. */
  readonly options: Readonly<Record<string, string>>;
  readonly placement: PlacementRules;
  /** Whether the pool's machines become Nodes. */
  readonly joins: boolean;
  /** Key of the label that names the pool on its Nodes. */
  readonly groupLabel: string;
  readonly provisionTimeoutMs: number;
  /** Maximum time from a guest that is up to its Node. */
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
  /** Name of this process as lease holder; unique per process start. */
  readonly holder: string;
  readonly regions: Readonly<Record<string, RegionSettings>>;
  readonly pools: Readonly<Record<string, PoolSettings>>;
  readonly backoff: { readonly initialMs: number; readonly maxMs: number };
  /** How long a ready machine's VM must have been missing before the machine is deleted. */
  readonly lostAfterMs: number;
  /** The same for its Node while the VM exists: a kubelet that registers again takes a while. */
  readonly nodeLostAfterMs: number;
  /** What to do with seeds of unknown machines. */
  readonly orphans: 'report' | 'delete';
  /** A cloud controller manager sets provider ids and removes Nodes; the fleet then does neither. */
  readonly cloudController: boolean;
  /** Namespace of Events that are not about a Node. */
  readonly namespace: string;
  /** How long a machine may wait for a place before it fails; absent: no limit. */
  readonly unplacedTimeoutMs?: number | undefined;
  /** Maximum duration of a changing request to Proxmox; absent: the default. */
  readonly maxRequestMs?: number | undefined;
  readonly reconcileMs: number;
  /** Interval between passes while a machine is in progress. */
  readonly busyMs: number;
}
