// SPDX-License-Identifier: Apache-2.0
// Which Node belongs to a machine: by provider id, then SMBIOS UUID, then name. Never a Node whose SMBIOS UUID is
// another machine's, that another machine's record names, or that is older than the machine.
import type { Machine } from '../../model/machine.ts';
import { readProviderId, vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { MachineIndex } from '../records/machine-index.ts';
import { nodeIndexOf } from './node-index.ts';

/** Tolerated difference between our clock and the API server's, which rounds timestamps down to seconds. */
const CLOCK_SKEW_MS = 60_000;

export function findNode(
  machine: Machine,
  nodes: readonly ClusterNode[],
  machines: Pick<MachineIndex, 'byNodeUid'>,
): ClusterNode | undefined {
  const index = nodeIndexOf(nodes);
  const proven = index.withMachineId(machine.id);
  const isCandidate = (node: ClusterNode) =>
    node.createdAt + CLOCK_SKEW_MS >= machine.requestedAt &&
    machines.byNodeUid(node.uid).every(({ id }) => id === machine.id);
  const { placement } = machine;
  const named = proven.find((node) => namesVmOf(node, machine));
  if (named !== undefined || placement === undefined) return named ?? proven[0];
  const { region, vmId, name } = placement;
  return (
    index.unprovenOfVm(region, vmId, machine.id).find(isCandidate) ??
    proven[0] ??
    index.unprovenNamed(name).find(isCandidate)
  );
}

/** The Node of the machine being reconciled. Undefined also while the cluster cannot be read. */
export function findOwnNode({ context, machine }: MachineReconcile): ClusterNode | undefined {
  const { clusterReading, records } = context;
  if (clusterReading.kind !== 'fresh') return undefined;
  return findNode(machine, clusterReading.view.nodes, records.index);
}

function namesVmOf({ providerId }: ClusterNode, { id, placement }: Machine): boolean {
  if (providerId === '' || placement === undefined) return false;
  if (providerId === vmProviderId(placement.region, placement.vmId)) return true;
  const read = readProviderId(providerId);
  return read.kind === 'smbios' && read.machine === id;
}
