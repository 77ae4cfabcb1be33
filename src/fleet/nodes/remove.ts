// SPDX-License-Identifier: Apache-2.0
// The end of a Node whose VM is gone, and never before: a Node that is removed while its kubelet lives comes back.
import type { ClusterNode, NodeRef } from '../../ports/cluster.ts';
import type { Job, Step } from '../lifecycle/job.ts';
import { nodeOf } from './match.ts';

/** `again` when nothing of it is left in the cluster, as far as that is ours to see to. */
export async function removeNode(job: Job): Promise<Step> {
  const { turn, machine } = job;
  if (turn.cluster === undefined || turn.settings.cloudController || !mayHaveJoined(job)) {
    return 'again';
  }
  const { nodeName, nodeUid } = machine;
  if (nodeName !== undefined && nodeUid !== undefined) {
    await deleteNode(job, { name: nodeName, uid: nodeUid });
  }
  if (turn.sight.kind !== 'fresh') {
    if (nodeUid !== undefined) return 'again';
    await turn.tellOnce(job.id, {
      kind: 'saw',
      subject: { pool: machine.pool, machine: job.id },
      reason: 'ViewStale',
      message: `the VM is gone; whether it left a Node cannot be seen while Kubernetes cannot be read`,
    });
    return 'wait';
  }
  const node = nodeOf(machine, turn.sight.view.nodes, turn.books.machines);
  if (node !== undefined && node.uid !== nodeUid && !isAlive(node)) await deleteNode(job, node);
  return 'again';
}

/** Who has a VM under that name and is at work is not the machine that is gone. */
function isAlive({ ready, systemUuid }: ClusterNode): boolean {
  return ready && systemUuid === '';
}

/** A VM that was never started has registered nothing. */
function mayHaveJoined({ machine, pool }: Job): boolean {
  if (machine.nodeName !== undefined) return true;
  return machine.configured === true && (pool?.joins ?? true);
}

async function deleteNode(job: Job, node: NodeRef): Promise<void> {
  await job.turn.cluster?.deleteNode(node, job.turn.acting);
}
