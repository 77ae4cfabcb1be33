// SPDX-License-Identifier: Apache-2.0
// Seeds for tests, with defaults: a test overrides only what matters to it.
import { type MachineId, parseMachineId } from '../../model/machine.ts';
import type { Parsed } from '../../model/parsed.ts';
import type {
  CustomJoin,
  GuestExtras,
  K3sJoin,
  KubeadmJoin,
  NetworkInput,
  NoJoin,
  Rke2Join,
  SeedInput,
} from '../seed-input.ts';

export { formatYaml } from '../format-yaml.ts';

export const MAC = 'BC:24:11:00:00:07';
export const BOOTSTRAP_TOKEN = 'abcdef.0123456789abcdef';
export const K3S_TOKEN = `K10${'a1'.repeat(32)}::${BOOTSTRAP_TOKEN}`;

export function unwrap<T>(parsed: Parsed<T>): T {
  if (!parsed.ok) throw new Error(`refused: ${parsed.problem}`);
  return parsed.value;
}

export function aMachineId(text = '7c9e6679-7425-40de-944b-e07fc1f90ae7'): MachineId {
  return unwrap(parseMachineId(text));
}

const NO_EXTRAS: GuestExtras = {
  packages: [],
  files: [],
  cloudConfig: undefined,
  proxy: undefined,
};

const RANCHER = {
  ...NO_EXTRAS,
  via: 'cloud-init',
  token: K3S_TOKEN,
  install: 'binary',
  downloadUrl: undefined,
  sha256: '0f'.repeat(32),
  registries: undefined,
  agentArgs: [],
} as const;

export function aK3sJoin(overrides: Partial<K3sJoin> = {}): K3sJoin {
  const [server, version] = ['https://10.0.0.2:6443', 'v1.34.4+k3s1'];
  return { ...RANCHER, kind: 'k3s', server, version, ...overrides };
}

export function anRke2Join(overrides: Partial<Rke2Join> = {}): Rke2Join {
  const [server, version] = ['https://10.0.0.2:9345', 'v1.34.4+rke2r1'];
  return { ...RANCHER, kind: 'rke2', server, version, ...overrides };
}

export function aKubeadmJoin(overrides: Partial<KubeadmJoin> = {}): KubeadmJoin {
  return {
    ...NO_EXTRAS,
    kind: 'kubeadm',
    via: 'cloud-init',
    server: 'https://10.0.0.2:6443',
    token: BOOTSTRAP_TOKEN,
    caCertHashes: [`sha256:${'5e'.repeat(32)}`],
    kubeletArgs: [],
    ...overrides,
  };
}

export function aCustomJoin(overrides: Partial<CustomJoin> = {}): CustomJoin {
  return {
    ...NO_EXTRAS,
    kind: 'custom',
    via: 'cloud-init',
    token: 'my-token',
    script: '#!/bin/sh\nset -eu\nmy-join\n',
    ...overrides,
  };
}

export function noJoin(overrides: Partial<NoJoin> = {}): NoJoin {
  return { ...NO_EXTRAS, kind: 'none', ...overrides };
}

export function aNetwork(overrides: Partial<NetworkInput> = {}): NetworkInput {
  return {
    interfaces: [
      { mac: MAC, mtu: undefined, v4: { kind: 'dhcp' }, v6: { kind: 'auto' }, routes: [] },
    ],
    dns: [],
    search: [],
    ...overrides,
  };
}

export function aSeedInput(overrides: Partial<SeedInput> = {}): SeedInput {
  return {
    machine: {
      id: aMachineId(),
      name: 'worker-7c9e6679',
      pool: 'small',
      region: 'lab',
      host: 'pve1',
      vmId: 1250,
      instanceType: 'medium',
    },
    pool: {
      labels: { tier: 'small' },
      groupLabel: 'autoscaler.proxmox/group',
      taints: [],
      architecture: 'amd64',
    },
    login: { user: 'ubuntu', publicKeys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMe ops@example'] },
    network: aNetwork(),
    preinstalled: false,
    join: aK3sJoin(),
    ...overrides,
  };
}
