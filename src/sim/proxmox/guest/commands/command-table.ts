// SPDX-License-Identifier: Apache-2.0
// All simulated programs. Any other program fails with exit code 127 (command not found).
import { type CommandTable, OK } from '../shell/command.ts';
import { DOWNLOAD_COMMANDS } from './downloads.ts';
import { FILE_COMMANDS } from './files.ts';
import { kubeadm } from './kubeadm.ts';
import { COMMANDS_WITHOUT_EFFECT, OS_COMMANDS } from './os.ts';
import { PACKAGE_COMMANDS } from './packages.ts';
import { rancherAgent } from './rancher-agent.ts';
import { SYSTEMD_COMMANDS } from './systemctl.ts';
import { TEXT_COMMANDS } from './text.ts';
import { WRAPPER_COMMANDS } from './wrappers.ts';

export const COMMANDS: CommandTable = {
  ...Object.fromEntries(COMMANDS_WITHOUT_EFFECT.map((name) => [name, () => OK])),
  true: () => OK,
  false: () => ({ code: 1 }),
  ...FILE_COMMANDS,
  ...TEXT_COMMANDS,
  ...WRAPPER_COMMANDS,
  ...DOWNLOAD_COMMANDS,
  ...OS_COMMANDS,
  ...PACKAGE_COMMANDS,
  ...SYSTEMD_COMMANDS,
  k3s: rancherAgent,
  rke2: rancherAgent,
  kubeadm,
  kubelet: () => OK,
};

/** Programs that are not in any image. They need one of these packages or an executable file of that name. */
export const REQUIRED_PACKAGES: Readonly<Record<string, readonly string[]>> = {
  k3s: [],
  rke2: [],
  crictl: ['cri-tools', 'kubeadm'],
  ctr: ['containerd', 'containerd.io'],
  helm: ['helm'],
  kubeadm: ['kubeadm'],
  kubelet: ['kubelet', 'kubeadm'],
  kubectl: ['kubectl', 'kubeadm'],
};
