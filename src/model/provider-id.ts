// SPDX-License-Identifier: Apache-2.0
// The names by which the Cluster Autoscaler and Kubernetes know a machine.
//
// A machine whose VM id is decided is `proxmox://<region>/<vmid>`, the form of the Proxmox cloud controller
// manager. Before that, while nothing exists on Proxmox, it is `pvescaler://machine/<machine id>`: stable for
// as long as the machine has no VM id, and never valid as the provider id of a Node. Once a Node exists, its
// own spec.providerID is what is told to others, verbatim, whatever its form.
import { type MachineId, parseMachineId } from './machine-id.ts';

export type ProviderId =
  | { readonly kind: 'vm'; readonly region: string; readonly vmId: number }
  | { readonly kind: 'placeholder'; readonly machine: MachineId }
  /** `proxmox://<uuid>`, as Cluster API's Proxmox provider writes it. */
  | { readonly kind: 'smbios'; readonly machine: MachineId }
  /** `k3s://name`, `rke2://name`: what these distributions write when nobody else does. */
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
