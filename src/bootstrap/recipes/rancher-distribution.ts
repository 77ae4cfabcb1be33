// SPDX-License-Identifier: Apache-2.0
// k3s and RKE2 are the same agent in two distributions: equal settings, different names.
import type { K3sJoin, Rke2Join } from '../seed-input.ts';

export type RancherJoin = K3sJoin | Rke2Join;

export interface RancherDistribution {
  readonly name: 'k3s' | 'rke2';
  readonly unit: string;
  /** Whether the release file contains the unit. */
  readonly hasUnit: boolean;
  readonly version: RegExp;
  readonly releases: string;
  readonly script: string;
  readonly program: string;
  /** The release file that contains the program. */
  asset(architecture: string): string;
  /** Shell command that installs that file from the current directory. */
  installCommand(asset: string): string;
  /** Environment variables of the vendor's install script. */
  scriptSettings(version: string): readonly string[];
}

export const RANCHER_DISTRIBUTIONS: Readonly<Record<RancherJoin['kind'], RancherDistribution>> = {
  k3s: {
    name: 'k3s',
    unit: 'k3s-agent',
    hasUnit: false,
    version: /^v\d+\.\d+\.\d+(-[\w.]+)?\+k3s\d+$/,
    releases: 'https://github.com/k3s-io/k3s/releases/download',
    script: 'https://get.k3s.io',
    program: '/usr/local/bin/k3s',
    asset: (architecture) => (architecture === 'amd64' ? 'k3s' : `k3s-${architecture}`),
    installCommand: (asset) => `install -m 0755 ${asset} /usr/local/bin/k3s`,
    scriptSettings: (version) => [`INSTALL_K3S_VERSION=${version}`, 'INSTALL_K3S_SKIP_START=true'],
  },
  rke2: {
    name: 'rke2',
    unit: 'rke2-agent',
    hasUnit: true,
    version: /^v\d+\.\d+\.\d+(-[\w.]+)?\+rke2r\d+$/,
    releases: 'https://github.com/rancher/rke2/releases/download',
    script: 'https://get.rke2.io',
    program: '/usr/local/bin/rke2',
    asset: (architecture) => `rke2.linux-${architecture}.tar.gz`,
    installCommand: (asset) => `tar xzf ${asset} -C /usr/local`,
    scriptSettings: (version) => [
      `INSTALL_RKE2_VERSION=${version}`,
      'INSTALL_RKE2_TYPE=agent',
      'INSTALL_RKE2_METHOD=tar',
    ],
  },
};
