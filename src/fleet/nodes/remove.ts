// SPDX-License-Identifier: Apache-2.0
// The end of a Node whose VM is gone, and never before: a Node that is removed while its kubelet lives comes back.
import type { ClusterNode, NodeRef } from '../../ports/cluster.ts';
import type { MachineReconcile, Step } from '../context/machine-reconcile.ts';
import { findNode } from './find-node.ts';

/** `again` when nothing of it is left in the cluster, as far as that is ours to see to. */
export async function removeNode(reconcile: MachineReconcile): Promise<Step> {
  const { context, machine } = reconcile;
  if (
    context.cluster === undefined ||
    context.settings.cloudController ||
    !mayHaveJoined(reconcile)
  ) {
    return 'again';
  }
  const { nodeName, nodeUid } = machine;
  if (nodeName !== undefined && nodeUid !== undefined) {
    await deleteNode(reconcile, { name: nodeName, uid: nodeUid });
  }
  if (context.clusterReading.kind !== 'fresh') {
    if (nodeUid !== undefined) return 'again';
    await context.recordOnce(reconcile.id, {
      kind: 'saw',
      subject: { pool: machine.pool, machine: reconcile.id },
      reason: 'ViewStale',
      message: `the VM is gone; whether it left a Node cannot be seen while Kubernetes cannot be read`,
    });
    return 'wait';
  }
  const node = findNode(machine, context.clusterReading.view.nodes, context.records.index);
  if (node !== undefined && node.uid !== nodeUid && !isAlive(node))
    await deleteNode(reconcile, node);
  return 'again';
}

/** Who has a VM under that name and is at work is not the machine that is gone. */
function isAlive({ ready, systemUuid }: ClusterNode): boolean {
  return ready && systemUuid === '';
}

/** A VM that was never started has registered nothing. */
function mayHaveJoined({ machine, pool }: MachineReconcile): boolean {
  if (machine.nodeName !== undefined) return true;
  return machine.configured === true && (pool?.joins ?? true);
}

async function deleteNode(reconcile: MachineReconcile, node: NodeRef): Promise<void> {
  await reconcile.context.cluster?.deleteNode(node, reconcile.context.writeOptions);
}
