// SPDX-License-Identifier: Apache-2.0
// The description of a cluster: the content of `--cluster FILE`, also built by tests. Sizes are bytes.
import type { ApiVersion } from '../../../proxmox/wire-facts/index.ts';
import type { GuestBehaviour } from '../guest/guest.ts';

export const STORAGE_TYPE_NAMES = [
  'dir',
  'lvmthin',
  'lvm',
  'zfspool',
  'nfs',
  'cifs',
  'rbd',
  'cephfs',
  'btrfs',
  'glusterfs',
  'iscsi',
  'iscsidirect',
  'zfs',
  'pbs',
  'esxi',
] as const;

export type StorageType = (typeof STORAGE_TYPE_NAMES)[number];

export interface BridgeDescription {
  readonly name: string;
  /** Network whose addresses guests receive by DHCP; absent = no DHCP server. */
  readonly dhcp?: string;
  readonly vlanAware?: boolean;
  /** VLANs that a VLAN-aware bridge carries, as in /etc/network/interfaces: `2-4094`, `10 20`. */
  readonly vlans?: string;
}

export interface HostDescription {
  readonly name: string;
  readonly cpus: number;
  readonly memory: number;
  readonly online?: boolean;
  /** How connections fail while it is off: `refused` at once, `no-route` (default) after 3 s, `timed-out` after 30 s. */
  readonly whenOff?: 'no-route' | 'refused' | 'timed-out';
  readonly address?: string;
  readonly bridges?: readonly BridgeDescription[];
  /** How far its clock is ahead, in seconds; negative = behind. */
  readonly clockSkew?: number;
  /** The release that it reports, `7.4-17` for example; absent = one of the simulated API version. */
  readonly release?: string;
}

export interface FileDescription {
  /** `iso/x.iso`, `import/jammy.qcow2`, `vztmpl/x.tar.zst`, `snippets/x.yaml`. */
  readonly name: string;
  /** Bytes of the file. */
  readonly size: number;
  /** Disk size inside an image; absent = the file size. */
  readonly virtualSize?: number;
  /** On local storage, the hosts that have the file; absent = all. */
  readonly hosts?: readonly string[];
  readonly checksums?: Readonly<Record<string, string>>;
  /** The backing file of an image; imports refuse such an image. */
  readonly backingFile?: string;
}

export interface StorageDescription {
  readonly name: string;
  readonly type: StorageType;
  readonly content: readonly string[];
  readonly shared?: boolean;
  readonly hosts?: readonly string[];
  readonly path?: string;
  readonly size: number;
  readonly used?: number;
  /** Neither used nor available: reserved blocks of a file system, or a quota. */
  readonly reserved?: number;
  readonly enabled?: boolean;
  /** False: not mounted on any host; it is listed as inactive and refuses work. */
  readonly active?: boolean;
  readonly files?: readonly FileDescription[];
}

export interface TokenDescription {
  readonly id: string;
  readonly secret: string;
  readonly comment?: string;
  readonly privsep?: boolean;
  /** Seconds since 1970; 0 = never. */
  readonly expire?: number;
}

export interface UserDescription {
  /** `name@realm`. */
  readonly id: string;
  readonly password?: string;
  readonly enabled?: boolean;
  readonly expire?: number;
  readonly tokens?: readonly TokenDescription[];
}

export interface AclDescription {
  readonly path: string;
  readonly role: string;
  readonly user?: string;
  readonly group?: string;
  readonly token?: string;
  readonly propagate?: boolean;
}

export interface VmDescription {
  readonly id: number;
  readonly host: string;
  /** Options as in the API: `scsi0: local-lvm:32` creates a disk, a full volume id attaches an existing one. */
  readonly config?: Readonly<Record<string, string>>;
  readonly running?: boolean;
  readonly template?: boolean;
  /** Snapshots of the described configuration, oldest first. */
  readonly snapshots?: readonly { readonly name: string; readonly description?: string }[];
  /** The source image of its disks; absent = empty disks. */
  readonly image?: string;
  readonly guest?: GuestBehaviour;
}

export interface ContainerDescription {
  readonly id: number;
  readonly host: string;
  readonly name?: string;
  readonly running?: boolean;
  readonly memory?: number;
  readonly cpus?: number;
}

export interface PoolDescription {
  readonly id: string;
  readonly comment?: string;
  readonly vms?: readonly number[];
  readonly storages?: readonly string[];
}

/** What download-url and query-url-metadata find at a URL. */
export interface UrlDescription {
  readonly url: string;
  readonly status?: number;
  readonly size?: number;
  readonly virtualSize?: number;
  readonly type?: string;
  readonly checksums?: Readonly<Record<string, string>>;
  readonly backingFile?: string;
  /** The server's certificate is not trusted. */
  readonly untrusted?: boolean;
}

export interface GuestRule {
  /** Pattern with `*` wildcards for the file name of the image or the name of the VM. */
  readonly match: string;
  readonly behaviour: GuestBehaviour;
}

export interface HaDescription {
  /** `vm:100`. */
  readonly sid: string;
  readonly state?: 'started' | 'stopped' | 'enabled' | 'disabled' | 'ignored';
  readonly group?: string;
  readonly comment?: string;
}

export interface DatacenterDescription {
  readonly nextId?: { readonly lower?: number; readonly upper?: number };
  readonly tagStyle?: {
    readonly caseSensitive?: boolean;
    readonly ordering?: 'config' | 'alphabetical';
  };
  readonly userTagAccess?: {
    readonly allow?: 'none' | 'list' | 'existing' | 'free';
    readonly list?: readonly string[];
  };
  readonly registeredTags?: readonly string[];
  readonly macPrefix?: string;
  /** Further options as in datacenter.cfg: `keyboard: de`, `migration: type=secure`. */
  readonly options?: Readonly<Record<string, string>>;
}

export interface ClusterDescription {
  readonly version?: ApiVersion;
  /** Name of the cluster; absent = a single host without a cluster. */
  readonly name?: string;
  readonly datacenter?: DatacenterDescription;
  readonly hosts: readonly HostDescription[];
  /** False: root cannot log in by ssh from host to host, so uploads reach only the host that receives them. */
  readonly ssh?: boolean;
  readonly storages: readonly StorageDescription[];
  readonly users?: readonly UserDescription[];
  readonly groups?: readonly { readonly id: string; readonly members?: readonly string[] }[];
  readonly roles?: readonly { readonly id: string; readonly privs: readonly string[] }[];
  readonly acl?: readonly AclDescription[];
  readonly pools?: readonly PoolDescription[];
  readonly vms?: readonly VmDescription[];
  readonly containers?: readonly ContainerDescription[];
  readonly ha?: readonly HaDescription[];
  readonly urls?: readonly UrlDescription[];
  readonly guests?: readonly GuestRule[];
}

const GIB = 2 ** 30;

/** The default cluster: local storage on each host, one shared storage, one API token. */
export function defaultCluster(hosts: number): ClusterDescription {
  const names = Array.from({ length: hosts }, (_, index) => `pve${index + 1}`);
  return {
    ...(hosts > 1 ? { name: 'sim' } : {}),
    hosts: names.map((name, index) => ({
      name,
      cpus: 16,
      memory: 64 * GIB,
      address: `192.0.2.${index + 11}`,
      bridges: [{ name: 'vmbr0', dhcp: '10.20.0.0/16' }],
    })),
    storages: [
      {
        name: 'local',
        type: 'dir',
        content: ['iso', 'vztmpl', 'backup', 'import', 'snippets'],
        size: 200 * GIB,
        used: 10 * GIB,
      },
      { name: 'local-lvm', type: 'lvmthin', content: ['images', 'rootdir'], size: 1000 * GIB },
      {
        name: 'shared',
        type: 'nfs',
        content: ['images', 'iso', 'import'],
        shared: true,
        size: 4000 * GIB,
        used: 100 * GIB,
      },
    ],
    users: [
      { id: 'root@pam', password: 'simulated' },
      {
        id: 'scaler@pve',
        password: 'simulated',
        tokens: [{ id: 'sim', secret: '00000000-0000-4000-8000-000000000001', privsep: false }],
      },
    ],
    acl: [{ path: '/', role: 'Administrator', user: 'scaler@pve' }],
    urls: [
      {
        url: 'https://images.example/noble-server-cloudimg-amd64.img',
        size: 600 * 2 ** 20,
        virtualSize: 3.5 * GIB,
        type: 'application/octet-stream',
      },
    ],
  };
}
