// SPDX-License-Identifier: Apache-2.0
// The interface between a simulated guest and the simulated Proxmox host around it. Types only.
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
  /** The image that the disk was created from; undefined = empty disk, the guest boots from the network. */
  readonly image: string | undefined;
  /** True until something booted from this disk. The first boot takes longer. */
  readonly isFirstBoot: boolean;
  readonly sizeBytes: number;
  /** A previous result of diskState(); a clone starts from its template's. Any other value means a fresh image. */
  readonly state: unknown;
}

/** The result of `curl` or `wget` in the guest: the content, or a failure with the tool's exit code. */
export type DownloadResult =
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
  /** 1 = real time; 60 = one simulated minute per second. */
  readonly speed: number;
  /** The DHCP lease in CIDR form; empty when the bridge has no DHCP server. */
  leaseAddress(mac: string, bridge: string): string;
  /** When absent, or undefined for a URL, the download succeeds with placeholder content. */
  readonly download?: ((url: string) => DownloadResult | undefined) | undefined;
  /** Connects to Kubernetes servers outside the simulation. When absent, a join is only recorded and succeeds. */
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

/** Every call throws `QEMU guest agent is not running` while isAgentRunning() is false. */
export interface GuestAgent {
  ping(): void;
  networkGetInterfaces(): GuestNetworkInterface[];
  getHostName(): { 'host-name': string };
  getOsInfo(): GuestOsInfo;
  /** The first element is the program path; the arguments are passed without a shell. Returns the pid. */
  exec(command: readonly string[], input?: string): number;
  /** The exit status can be read once; after that the pid is unknown. */
  execStatus(pid: number): GuestExecStatus;
  readFile(path: string): Uint8Array;
  writeFile(path: string, content: Uint8Array): void;
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
  /** Text, or base64 when the bytes are not UTF-8. */
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

/** One attempt of a kubelet to join a cluster, with its settings and their source. */
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
  /** The config file, or the command line when there is no file. */
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
  /** Powers on. Has no effect while the guest is on. */
  start(): void;
  /** Cuts the power: everything that is not on disk is lost. */
  stop(): void;
  /** ACPI or agent shutdown. Resolves to true when the guest powered off, false when it ignores the request. */
  requestShutdown(): Promise<boolean>;
  /** The guest powered itself off since the last start (shutdown, poweroff, power_state). */
  readonly isPoweredOff: boolean;
  isAgentRunning(): boolean;
  readonly agent: GuestAgent;
  /** JSON-serializable state for the next createGuest() with the same disk or a clone of it. */
  diskState(): unknown;
  report(): GuestReport;
  /** Called after each change of phase, address, agent or join. Returns the unsubscribe function. */
  onChange(listener: () => void): () => void;
}
