// SPDX-License-Identifier: Apache-2.0
// Which Node is which machine's. By provider id, then by SMBIOS UUID, then by name; and never a Node that is proven
// to be another's, or that is older than the machine.
import type { Machine } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import { readProviderId, vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';

/** Between our clock and the API server's, whose stamps are cut to seconds besides. */
const CLOCKS_APART_MS = 60_000;

export function findNode(
  machine: Machine,
  nodes: readonly ClusterNode[],
  machines: readonly Machine[],
): ClusterNode | undefined {
  const claimed = new Set(
    machines.flatMap(({ id, nodeUid }) =>
      id === machine.id || nodeUid === undefined ? [] : [nodeUid],
    ),
  );
  const candidates = nodes.filter(
    (node) => isProven(node, machine.id) || (!claimed.has(node.uid) && mayBe(node, machine)),
  );
  return (
    candidates.find((node) => namesVmOf(node, machine)) ??
    candidates.find((node) => isProven(node, machine.id)) ??
    candidates.find((node) => machine.placement?.name === node.name)
  );
}

function mayBe({ systemUuid, createdAt }: ClusterNode, machine: Machine): boolean {
  return systemUuid === '' && createdAt + CLOCKS_APART_MS >= machine.requestedAt;
}

export function isProven({ systemUuid }: ClusterNode, id: MachineId): boolean {
  const reported = systemUuid.toLowerCase();
  return reported === id || reported === littleEndian(id);
}

/** Firmware of before SMBIOS 2.6 is read with the first three fields turned round. */
function littleEndian(uuid: string): string {
  const turned = (hex: string) => (hex.match(/../g) ?? []).toReversed().join('');
  const [first = '', second = '', third = '', ...rest] = uuid.split('-');
  return [turned(first), turned(second), turned(third), ...rest].join('-');
}

function namesVmOf({ providerId }: ClusterNode, { id, placement }: Machine): boolean {
  if (providerId === '' || placement === undefined) return false;
  if (providerId === vmProviderId(placement.region, placement.vmId)) return true;
  const read = readProviderId(providerId);
  return read.kind === 'smbios' && read.machine === id;
}
