// SPDX-License-Identifier: Apache-2.0
// Every program that a guest knows, one handler each. What is not here does not exist: exit 127.
import { type CommandTable, OK } from '../shell/command.ts';
import { DOWNLOADS } from './downloads.ts';
import { FILE_COMMANDS } from './files.ts';
import { kubeadm } from './kubeadm.ts';
import { MACHINE_COMMANDS, WITHOUT_EFFECT } from './machine.ts';
import { PACKAGE_COMMANDS } from './packages.ts';
import { rancherAgent } from './rancher.ts';
import { SYSTEMCTL } from './systemctl.ts';
import { TEXT_COMMANDS } from './text.ts';
import { WRAPPERS } from './wrappers.ts';

export const COMMANDS: CommandTable = {
  ...Object.fromEntries(WITHOUT_EFFECT.map((name) => [name, () => OK])),
  true: () => OK,
  false: () => ({ code: 1 }),
  ...FILE_COMMANDS,
  ...TEXT_COMMANDS,
  ...WRAPPERS,
  ...DOWNLOADS,
  ...MACHINE_COMMANDS,
  ...PACKAGE_COMMANDS,
  ...SYSTEMCTL,
  k3s: rancherAgent,
  rke2: rancherAgent,
  kubeadm,
  kubelet: () => OK,
};

/** Programs that no image brings: one of these packages, or an executable file of that name, must be there. */
export const INSTALLED_WITH: Readonly<Record<string, readonly string[]>> = {
  k3s: [],
  rke2: [],
  crictl: ['cri-tools', 'kubeadm'],
  ctr: ['containerd', 'containerd.io'],
  helm: ['helm'],
  kubeadm: ['kubeadm'],
  kubelet: ['kubelet', 'kubeadm'],
  kubectl: ['kubectl', 'kubeadm'],
};
