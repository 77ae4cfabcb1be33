// SPDX-License-Identifier: Apache-2.0
// The state of a simulated cluster as plain mutable records. After a change of a VM's name, power state or size,
// call `ClusterState.recordStatus`: /cluster/resources shows such changes after the next broadcast.
import type { Guest, GuestBehaviour } from '../guest/guest.ts';
import type { StorageType } from './cluster-description.ts';

export interface Bridge {
  readonly name: string;
  readonly dhcp: string | undefined;
  readonly vlanAware?: boolean | undefined;
  readonly vlans?: string | undefined;
}

export interface Host {
  readonly name: string;
  readonly cpus: number;
  readonly memory: number;
  readonly address: string;
  readonly bridges: Bridge[];
  online: boolean;
  /** How a connection to the host fails while it is off. */
  readonly whenOff: 'no-route' | 'refused' | 'timed-out';
  /** Clock time of the last change of `online`. */
  onlineChangedAt: number;
  nextPid: number;
  readonly clockSkew?: number | undefined;
  readonly release?: string | undefined;
  /** Of its certificate. */
  fingerprint?: string;
}

export interface Volume {
  /** The part of the volume id after the colon: `iso/x.iso`, `vm-100-disk-0`, `100/vm-100-disk-0.qcow2`. */
  readonly name: string;
  readonly content: string;
  readonly format: string;
  /** File size in bytes; for images the disk size. */
  size: number;
  readonly virtualSize: number | undefined;
  readonly vmId: number | undefined;
  readonly createdAt: number;
  readonly bytes?: Uint8Array | undefined;
  readonly checksums?: Readonly<Record<string, string>> | undefined;
  readonly backingFile?: string | undefined;
  /** Base volume of a linked clone. */
  readonly base?: string | undefined;
  /** Source image of the disk. `guestState` is what guests wrote to it since. */
  image: string | undefined;
  guestState: unknown;
  everBooted: boolean;
}

export interface Storage {
  readonly id: string;
  readonly type: StorageType;
  content: readonly string[];
  shared: boolean;
  hosts: readonly string[] | undefined;
  /** Further options of the definition, in the format of the API. */
  options: Readonly<Record<string, string>>;
  /** Set for file based types only. */
  readonly path: string | undefined;
  readonly size: number;
  readonly used: number;
  /** Neither used nor available; absent in states saved by earlier versions. */
  readonly reserved?: number;
  enabled: boolean;
  active: boolean;
  /** By host (`*` when shared), then by volume name. */
  readonly volumes: Map<string, Map<string, Volume>>;
}

export interface RunningVm {
  readonly guest: Guest;
  readonly startedAt: number;
  /** When the guest agent responded for the first time. */
  agentReadyAt: number | undefined;
  readonly pid: number;
  paused: boolean;
  /** The configuration at the start of the VM: the hardware that is active now. */
  readonly bootConfig: Readonly<Record<string, string>>;
}

/** What pvestatd broadcasts about a VM. */
export interface StatusBroadcast {
  readonly at: number;
  readonly name: string;
  readonly status: 'running' | 'stopped';
  readonly cpus: number;
  readonly memory: number;
  readonly disk: number;
  readonly startedAt: number | undefined;
}

export interface Snapshot {
  readonly name: string;
  readonly description: string | undefined;
  readonly takenAt: number;
  readonly parent: string | undefined;
  readonly config: Readonly<Record<string, string>>;
}

export interface Vm {
  readonly id: number;
  host: string;
  config: Record<string, string>;
  pending: Record<string, string>;
  pendingDelete: Set<string>;
  snapshots: Snapshot[];
  running: RunningVm | undefined;
  behaviour: GuestBehaviour | undefined;
  broadcasts: StatusBroadcast[];
  readonly createdAt: number;
}

export interface Container {
  readonly id: number;
  host: string;
  readonly name: string;
  readonly running: boolean;
  readonly memory: number;
  readonly cpus: number;
}

export interface Token {
  readonly id: string;
  readonly secret: string;
  privsep: boolean;
  expire: number;
  comment: string | undefined;
}

export interface User {
  readonly id: string;
  password: string | undefined;
  enabled: boolean;
  expire: number;
  readonly tokens: Map<string, Token>;
}

export interface Acl {
  readonly path: string;
  readonly role: string;
  readonly type: 'user' | 'group' | 'token';
  readonly who: string;
  readonly propagate: boolean;
}

export interface Pool {
  comment: string | undefined;
  readonly vms: Set<number>;
  readonly storages: Set<string>;
}

export interface HaResource {
  readonly sid: string;
  state: string;
  group: string | undefined;
  comment: string | undefined;
}
