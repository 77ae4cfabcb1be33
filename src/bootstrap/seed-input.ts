// SPDX-License-Identifier: Apache-2.0
// The input of a seed: a machine, its pool, its network and its join. Values only: configuration, keys and
// files have already been read.
import type { Labels } from '../model/labels.ts';
import type { MachineId } from '../model/machine.ts';
import type { Taint } from '../model/taints.ts';
import type { TemplateBuild } from './template-build.ts';

export interface MachineInput {
  readonly id: MachineId;
  /** VM name, host name and Node name. */
  readonly name: string;
  readonly pool: string;
  readonly region: string;
  readonly host: string;
  readonly vmId: number;
  readonly instanceType: string | undefined;
}

export interface PoolInput {
  readonly labels: Labels;
  /** Key of the label that contains the pool, by default `autoscaler.proxmox/group`. */
  readonly groupLabel: string;
  readonly taints: readonly Taint[];
  readonly architecture: 'amd64' | 'arm64';
}

export interface LoginInput {
  readonly user: string;
  readonly publicKeys: readonly string[];
}

export type FamilyInput =
  | { readonly kind: 'dhcp' }
  /** Router advertisements; IPv6 only. */
  | { readonly kind: 'auto' }
  | { readonly kind: 'off' }
  | {
      readonly kind: 'static';
      /** In the form `address/prefix`. */
      readonly addresses: readonly string[];
      readonly gateway: string | undefined;
    };

export interface RouteInput {
  /** A network in CIDR form. */
  readonly to: string;
  readonly via: string;
}

export interface InterfaceInput {
  readonly mac: string;
  /** Proxmox uses 1 for the MTU of the bridge, which virtio then reports to the guest. */
  readonly mtu: number | undefined;
  readonly v4: FamilyInput;
  readonly v6: FamilyInput;
  readonly routes: readonly RouteInput[];
}

export interface NetworkInput {
  /** In the order of the VM's interfaces, `net0` first. Name servers are set on the first one. */
  readonly interfaces: readonly InterfaceInput[];
  readonly dns: readonly string[];
  readonly search: readonly string[];
}

export interface ExtraFile {
  readonly path: string;
  readonly content: string;
  /** Octal: `0644`. */
  readonly permissions: string;
}

export interface ProxyInput {
  readonly http?: string | undefined;
  readonly https?: string | undefined;
  readonly none: readonly string[];
}

/** Settings that all join methods share. */
export interface GuestExtras {
  readonly packages: readonly string[];
  readonly files: readonly ExtraFile[];
  /** The user's own cloud-config, as text. */
  readonly cloudConfig: string | undefined;
  readonly proxy: ProxyInput | undefined;
}

export type JoinVia = 'cloud-init' | 'agent';

interface RancherAgentJoin extends GuestExtras {
  readonly via: JoinVia;
  readonly server: string;
  readonly version: string;
  readonly token: string;
  /** A pinned binary, the vendor's script, or nothing if the image has program and unit. */
  readonly install: 'binary' | 'script' | 'none';
  /** URL of a release mirror (binary) or of the script (script). */
  readonly downloadUrl: string | undefined;
  /** Checksum of the binary (k3s) or the archive (RKE2). Without it the release's checksum file is used. */
  readonly sha256: string | undefined;
  /** Content of `registries.yaml`. */
  readonly registries: string | undefined;
  readonly agentArgs: readonly string[];
}

export interface K3sJoin extends RancherAgentJoin {
  readonly kind: 'k3s';
}

export interface Rke2Join extends RancherAgentJoin {
  readonly kind: 'rke2';
}

export interface KubeadmJoin extends GuestExtras {
  readonly kind: 'kubeadm';
  readonly via: JoinVia;
  readonly server: string;
  readonly token: string;
  readonly caCertHashes: readonly string[];
  /** In the form `name=value`. */
  readonly kubeletArgs: readonly string[];
}

export interface CustomJoin extends GuestExtras {
  readonly kind: 'custom';
  readonly via: JoinVia;
  readonly token: string | undefined;
  /** Runs once, as root. Absent: the user's cloud-config performs the join. */
  readonly script: string | undefined;
}

/** The image joins by itself, or there is no cluster. */
export interface NoJoin extends GuestExtras {
  readonly kind: 'none';
}

export type JoinInput = K3sJoin | Rke2Join | KubeadmJoin | CustomJoin | NoJoin;
export type JoinKind = Exclude<JoinInput['kind'], 'none'>;

export interface SeedInput {
  readonly machine: MachineInput;
  readonly pool: PoolInput;
  readonly login: LoginInput;
  readonly network: NetworkInput;
  /** The image contains the guest agent, curl and CA certificates: only the user's packages are installed. */
  readonly preinstalled: boolean;
  readonly join: JoinInput;
  /** The machine becomes a template; it joins nothing. */
  readonly template?: TemplateBuild | undefined;
}
