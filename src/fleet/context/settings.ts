// SPDX-License-Identifier: Apache-2.0
// The fleet's settings: complete, valid, readonly. Pools and regions are those of the config; setup/ adds what needs I/O.
import type { ExtraFile, LoginInput, PoolInput, TemplateBuild } from '../../bootstrap/index.ts';
import type { PoolConfig, RegionSettings } from '../../config/types/index.ts';
import type { TemplateIdentity } from '../../model/role.ts';
import type { JoinSettings } from './join-settings.ts';

export type { RegionSettings } from '../../config/types/index.ts';

export interface ImageSettings {
  readonly url: string;
  readonly format: 'qcow2' | 'raw' | 'vmdk';
  readonly checksum: { readonly algorithm: 'sha256' | 'sha512'; readonly hex: string } | undefined;
  /** Reads the checksum from the publisher's list, when `checksum` is undefined. */
  readonly readChecksum?: () => Promise<NonNullable<ImageSettings['checksum']>>;
  readonly verifyCertificates: boolean;
}

export type SourceSettings =
  | ({ readonly kind: 'image' } & ImageSettings)
  | ({
      readonly kind: 'template';
      readonly clone: 'full' | 'linked';
    } & TemplateIdentity)
  | { readonly kind: 'netboot' };

export type NetworkSettings = PoolConfig['network'];
export type InterfaceSettings = NetworkSettings['interfaces'][number];
/** A size that has a name in the config. */
export type NamedSize = PoolConfig['instanceTypes'][number];

/** Content of the seed beside the machine's own facts. Without it the VM gets no seed. */
export interface SeedSettings {
  readonly registration: PoolInput;
  readonly login: LoginInput;
  readonly preinstalled: boolean;
  readonly join: JoinSettings;
  /** Of a machine that becomes a template. */
  readonly template?: TemplateBuild;
}

/** A pool of the config, with what its machines are created from. */
export interface PoolSettings extends PoolConfig {
  readonly source: SourceSettings;
  readonly seed: SeedSettings | undefined;
}

/** A template of the config: how it is found, and how it is built. */
export interface TemplateSettings extends Pick<TemplateIdentity, 'id' | 'idByHost' | 'name'> {
  /** Absent: it is made by other means. */
  readonly build?: TemplateBuildSettings;
}

export interface TemplateBuildSettings extends TemplateBuild {
  /** Name of an image in the config. */
  readonly image: string;
  readonly bridge: string;
  readonly storage: string | undefined;
  readonly files: readonly ExtraFile[];
}

/** What hand-made VMs are made from. */
export interface VmSettings {
  /** What a request does not say. */
  readonly base: PoolSettings;
  /** By their names in the config. */
  readonly images: Readonly<Record<string, ImageSettings>>;
  readonly templates: Readonly<Record<string, TemplateSettings>>;
}

export interface FleetSettings {
  /** UID of the kube-system namespace, or an id generated once. */
  readonly cluster: string;
  /** Tag of each VM, for people. Two clusters may have the same name. */
  readonly clusterName?: string | undefined;
  /** Name of this process as lease holder; unique per process start. */
  readonly holder: string;
  readonly regions: Readonly<Record<string, RegionSettings>>;
  readonly pools: Readonly<Record<string, PoolSettings>>;
  readonly vms: VmSettings;
  readonly backoff: { readonly initialMs: number; readonly maxMs: number };
  /** How long a ready machine's VM must have been missing before the machine is deleted. */
  readonly lostAfterMs: number;
  /** The same for its Node while the VM exists: a kubelet that registers again takes a while. */
  readonly nodeLostAfterMs: number;
  /** More lost machines of a pool than both of these: none of them is deleted. */
  readonly guards: {
    readonly maxTotalUnreadyPercentage: number;
    readonly okTotalUnreadyCount: number;
  };
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
