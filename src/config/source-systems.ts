// SPDX-License-Identifier: Apache-2.0
// The systems that pvescaler replaces and whose config files can be imported.

export const SOURCE_SYSTEMS = [
  'externalgrpc',
  'proxmox-autoscaler',
  'vm-plan',
  'kubenodesmith',
] as const;

export type SourceSystem = (typeof SOURCE_SYSTEMS)[number];

/** Names of the systems in messages and in the reference page. */
export const SOURCE_SYSTEM_NAMES: Readonly<Record<SourceSystem, string>> = {
  externalgrpc: 'ca-proxmox-externalgrpc',
  'proxmox-autoscaler': 'proxmox-autoscaler',
  'vm-plan': 'VM creation plan',
  kubenodesmith: 'KubeNodeSmith',
};
