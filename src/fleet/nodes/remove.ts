// SPDX-License-Identifier: Apache-2.0
// Deletes the Node after its VM is gone, never before: a running kubelet would register it again.
import type { ClusterNode, NodeRef } from '../../ports/cluster.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import { findNode } from './find-node.ts';

/** True when the Node is gone or not ours to remove; false while that cannot be checked. */
export async function removeNode(reconcile: MachineReconcile): Promise<boolean> {
  const { context, machine } = reconcile;
  if (
    context.cluster === undefined ||
    context.settings.cloudController ||
    !mayHaveJoined(reconcile)
  ) {
    return true;
  }
  const { nodeName, nodeUid } = machine;
  if (nodeName !== undefined && nodeUid !== undefined) {
    await deleteNode(reconcile, { name: nodeName, uid: nodeUid });
  }
  if (context.clusterReading.kind !== 'fresh') {
    if (nodeUid !== undefined) return true;
    await context.recordOnce(reconcile.id, {
      kind: 'saw',
      subject: { pool: machine.pool, machine: reconcile.id },
      reason: 'ViewStale',
      message: 'its Node is removed when Kubernetes can be read again',
    });
    return false;
  }
  const node = findNode(machine, context.clusterReading.view.nodes, context.records.index);
  if (node !== undefined && node.uid !== nodeUid && !isAlive(node))
    await deleteNode(reconcile, node);
  return true;
}

/** A Ready Node of that name with an unknown SMBIOS UUID may run on another VM. */
function isAlive({ ready, systemUuid }: ClusterNode): boolean {
  return ready && systemUuid === '';
}

/** A VM that was never configured has not started, and has registered no Node. */
function mayHaveJoined({ machine, pool }: MachineReconcile): boolean {
  if (machine.nodeName !== undefined) return true;
  return machine.configured === true && (pool?.joins ?? true);
}

async function deleteNode(reconcile: MachineReconcile, node: NodeRef): Promise<void> {
  await reconcile.context.cluster?.deleteNode(node, reconcile.context.writeOptions());
}
