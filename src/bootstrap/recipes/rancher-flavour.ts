// SPDX-License-Identifier: Apache-2.0
// k3s and RKE2 are one agent in two packages: the same settings, other names.
import type { K3sJoin, Rke2Join } from '../seed-input.ts';

export type RancherJoin = K3sJoin | Rke2Join;

export interface Flavour {
  readonly name: 'k3s' | 'rke2';
  readonly unit: string;
  readonly version: RegExp;
  readonly releases: string;
  readonly script: string;
  readonly program: string;
  /** The file of a release that holds the program. */
  asset(architecture: string): string;
  /** Shell that installs that file from the present folder. */
  installs(asset: string): string;
  /** Settings that the vendor's script reads from its environment. */
  scriptSettings(version: string): readonly string[];
}

export const FLAVOURS: Readonly<Record<RancherJoin['kind'], Flavour>> = {
  k3s: {
    name: 'k3s',
    unit: 'k3s-agent',
    version: /^v\d+\.\d+\.\d+(-[\w.]+)?\+k3s\d+$/,
    releases: 'https://github.com/k3s-io/k3s/releases/download',
    script: 'https://get.k3s.io',
    program: '/usr/local/bin/k3s',
    asset: (architecture) => (architecture === 'amd64' ? 'k3s' : `k3s-${architecture}`),
    installs: (asset) => `install -m 0755 ${asset} /usr/local/bin/k3s`,
    scriptSettings: (version) => [`INSTALL_K3S_VERSION=${version}`, 'INSTALL_K3S_SKIP_START=true'],
  },
  rke2: {
    name: 'rke2',
    unit: 'rke2-agent',
    version: /^v\d+\.\d+\.\d+(-[\w.]+)?\+rke2r\d+$/,
    releases: 'https://github.com/rancher/rke2/releases/download',
    script: 'https://get.rke2.io',
    program: '/usr/local/bin/rke2',
    asset: (architecture) => `rke2.linux-${architecture}.tar.gz`,
    installs: (asset) => `tar xzf ${asset} -C /usr/local`,
    scriptSettings: (version) => [
      `INSTALL_RKE2_VERSION=${version}`,
      'INSTALL_RKE2_TYPE=agent',
      'INSTALL_RKE2_METHOD=tar',
    ],
  },
};
