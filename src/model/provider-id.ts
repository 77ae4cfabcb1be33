// SPDX-License-Identifier: Apache-2.0
// The provider ids by which the Cluster Autoscaler and Kubernetes identify a machine.
//
// A machine with a VM id has `proxmox://<region>/<vmid>`, the format of the Proxmox cloud controller manager.
// Before that it has `pvescaler://machine/<machine id>`, which never is the provider id of a Node. Once a Node
// exists, its own spec.providerID is reported verbatim, whatever its format.
import { type MachineId, parseMachineId } from './machine.ts';

export type ProviderId =
  | { readonly kind: 'vm'; readonly region: string; readonly vmId: number }
  | { readonly kind: 'placeholder'; readonly machine: MachineId }
  /** `proxmox://<uuid>`, the format of Cluster API's Proxmox provider. */
  | { readonly kind: 'smbios'; readonly machine: MachineId }
  /** `k3s://name`, `rke2://name`: the default of these distributions. */
  | { readonly kind: 'node-name'; readonly nodeName: string }
  | { readonly kind: 'foreign' };

export function vmProviderId(region: string, vmId: number): string {
  return `proxmox://${region}/${vmId}`;
}

export function placeholderProviderId(machine: MachineId): string {
  return `pvescaler://machine/${machine}`;
}

export function readProviderId(text: string): ProviderId {
  const [, scheme, rest] = /^([a-z0-9]+):\/\/(.+)$/.exec(text) ?? [];
  if (scheme === undefined || rest === undefined) return { kind: 'foreign' };
  switch (scheme) {
    case 'proxmox':
      return readProxmox(rest);
    case 'pvescaler':
      return readPlaceholder(rest);
    case 'k3s':
    case 'rke2':
      return { kind: 'node-name', nodeName: rest };
    default:
      return { kind: 'foreign' };
  }
}

function readProxmox(rest: string): ProviderId {
  const [, region, vmId] = /^([^/]+)\/([1-9]\d{2,8})$/.exec(rest) ?? [];
  if (region !== undefined) return { kind: 'vm', region, vmId: Number(vmId) };
  const machine = parseMachineId(rest);
  return machine.ok ? { kind: 'smbios', machine: machine.value } : { kind: 'foreign' };
}

function readPlaceholder(rest: string): ProviderId {
  const machine = parseMachineId(rest.replace(/^machine\//, ''));
  return rest.startsWith('machine/') && machine.ok
    ? { kind: 'placeholder', machine: machine.value }
    : { kind: 'foreign' };
}
