// SPDX-License-Identifier: Apache-2.0
// What the simulator around the guests hands in and gets back. Values and method shapes only.
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import type { OpenConnection } from './kubelet/server-api.ts';

export type GuestBehaviour = 'normal' | 'never-boots' | 'hangs' | 'no-agent' | 'ignores-shutdown';

export interface GuestInterfaceInput {
  /** `net0`, `net1`, … as in the VM's config. */
  readonly slot: string;
  readonly mac: string;
  readonly bridge: string;
}

export interface GuestDiskInput {
  /** The image that the disk was made from; undefined = empty disk, the guest comes from the network. */
  readonly image: string | undefined;
  /** Nothing was ever booted from this disk: the first boot takes longer. */
  readonly firstBoot: boolean;
  readonly sizeBytes: number;
  /** What diskState() returned before; a clone starts from its template's. Anything else is a fresh image. */
  readonly state: unknown;
}

/** What a URL gives to `curl` and `wget` in the guest: a text, or a failure with the tool's exit code. */
export type DownloadAnswer =
  | { readonly content: string }
  | { readonly exitCode: number; readonly message: string };

export interface GuestInput {
  readonly vmId: number;
  readonly smbiosUuid: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly interfaces: readonly GuestInterfaceInput[];
  readonly disk: GuestDiskInput;
  readonly seedIso: Uint8Array | undefined;
  /** Proxmox's own cloud-init options: ciuser, sshkeys (url-encoded), ipconfigN, nameserver, searchdomain, name. */
  readonly cloudInitDrive: Readonly<Record<string, string>> | undefined;
  readonly agentEnabled: boolean;
  readonly behaviour: GuestBehaviour;
  readonly clock: Clock;
  readonly random: Random;
  /** 1 = as slow as a real one; 60 = a minute in a second. */
  readonly speed: number;
  /** The address in CIDR form that DHCP gives; an empty text when nobody answers on that bridge. */
  leaseAddress(mac: string, bridge: string): string;
  /** Absent or undefined for a URL: the download succeeds with a stand-in for the content. */
  readonly download?: ((url: string) => DownloadAnswer | undefined) | undefined;
  /** The way to Kubernetes servers outside. Absent: a join is recorded and counts as done. */
  readonly connect?: OpenConnection | undefined;
}

export interface GuestIpAddress {
  readonly 'ip-address-type': 'ipv4' | 'ipv6';
  readonly 'ip-address': string;
  readonly prefix: number;
}

export interface GuestNetworkInterface {
  readonly name: string;
  readonly 'hardware-address': string;
  readonly 'ip-addresses'?: readonly GuestIpAddress[];
}

export interface GuestOsInfo {
  readonly id: string;
  readonly name: string;
  readonly 'pretty-name': string;
  readonly version: string;
  readonly 'version-id': string;
  readonly 'kernel-release': string;
  readonly 'kernel-version': string;
  readonly machine: string;
}

export interface GuestExecStatus {
  readonly exited: 0 | 1;
  readonly exitcode?: number;
  readonly signal?: number;
  readonly 'out-data'?: string;
  readonly 'err-data'?: string;
}

/** Every call throws `QEMU guest agent is not running` while agentAnswers() is false. */
export interface GuestAgent {
  ping(): void;
  networkGetInterfaces(): GuestNetworkInterface[];
  getHostName(): { 'host-name': string };
  getOsInfo(): GuestOsInfo;
  /** The first word is the program's path; nothing is split and no shell is involved. Returns the pid. */
  exec(command: readonly string[], input?: string): number;
  /** Readable once after the exit, then the pid is unknown. */
  execStatus(pid: number): GuestExecStatus;
}

export type GuestPhase =
  | 'off'
  | 'firmware'
  | 'kernel'
  | 'cloud-init'
  | 'running'
  | 'hung'
  | 'shutting-down';

export interface GuestUser {
  readonly name: string;
  readonly authorizedKeys: readonly string[];
  readonly groups: readonly string[];
  readonly sudo: readonly string[];
  readonly shell: string;
  readonly lockPassword: boolean;
  readonly passwordHash?: string;
}

export interface GuestFile {
  /** As text; bytes that are not UTF-8 are kept in base64. */
  readonly content: string;
  readonly encoding: 'utf8' | 'base64';
  /** Octal, four digits: `0644`. */
  readonly mode: string;
  readonly owner: string;
}

export interface GuestCommandRun {
  readonly source: string;
  readonly text: string;
  readonly exitCode: number;
}

/** A kubelet that tried to become a node: everything it said, and where it read it. */
export interface JoinAttempt {
  readonly distribution: 'k3s' | 'rke2' | 'kubeadm';
  readonly server: string | undefined;
  readonly token: string | undefined;
  readonly nodeName: string;
  readonly labels: readonly string[];
  readonly taints: readonly string[];
  readonly kubeletArgs: readonly string[];
  readonly providerId: string | undefined;
  /** CA pins of kubeadm (`sha256:…`). */
  readonly caCertHashes: readonly string[];
  /** The config file, or the command line when there was none. */
  readonly source: string;
  readonly atMs: number;
}

export interface GuestNetworkReport {
  readonly slot: string;
  readonly name: string;
  readonly mac: string;
  readonly addresses: readonly string[];
  readonly gateway: string | undefined;
  readonly nameservers: readonly string[];
  readonly searchDomains: readonly string[];
}

export interface GuestReport {
  readonly phase: GuestPhase;
  readonly boots: number;
  readonly hostname: string;
  readonly instanceId: string | undefined;
  readonly users: readonly GuestUser[];
  readonly files: Readonly<Record<string, GuestFile>>;
  readonly packages: readonly string[];
  readonly services: Readonly<
    Record<string, { readonly enabled: boolean; readonly active: boolean }>
  >;
  readonly swapOn: boolean;
  readonly kernelModules: readonly string[];
  readonly downloads: readonly string[];
  readonly commandsRun: readonly GuestCommandRun[];
  readonly network: readonly GuestNetworkReport[];
  readonly joinAttempts: readonly JoinAttempt[];
  readonly warnings: readonly string[];
  readonly errors: readonly string[];
  readonly cloudInitDisabled: boolean;
}

export interface Guest {
  /** Power on. Nothing happens while it is on already. */
  start(): void;
  /** The plug is pulled: what was not on disk is gone. */
  stop(): void;
  /** ACPI or agent shutdown. True when the guest powered itself off, false when it takes no notice. */
  requestShutdown(): Promise<boolean>;
  /** The guest ended itself since the last start (shutdown, poweroff, power_state). */
  readonly poweredOff: boolean;
  agentAnswers(): boolean;
  readonly agent: GuestAgent;
  /** Serialisable as JSON; hand it to the next createGuest() of the same disk, or of a clone. */
  diskState(): unknown;
  report(): GuestReport;
  /** Called after each change of phase, address, agent or join. Returns the way to unsubscribe. */
  onChange(listener: () => void): () => void;
}
