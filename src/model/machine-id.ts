// SPDX-License-Identifier: Apache-2.0
// A machine's id is a version 4 UUID in lower case. It is also the VM's SMBIOS UUID. The guest's kernel passes
// that to the kubelet, which reports it as the Node's status.nodeInfo.systemUUID: one id proves identity in the
// database, in Proxmox and in Kubernetes.
import { accepted, type Parsed, refused } from './parsed.ts';

export type MachineId = string & { readonly brand: 'MachineId' };

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Accepts upper case, which firmware and people write, and returns lower case. */
export function parseMachineId(text: string): Parsed<MachineId> {
  const lower = text.toLowerCase();
  return isMachineId(lower) ? accepted(lower) : refused('is not a UUID');
}

function isMachineId(text: string): text is MachineId {
  return UUID.test(text);
}

/** The part of the id that ends default machine names: short enough to read, long enough to avoid collisions. */
export function shortMachineId(id: MachineId): string {
  return id.slice(0, 8);
}
