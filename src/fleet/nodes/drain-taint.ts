// SPDX-License-Identifier: Apache-2.0
// The taint of a drain on a Node, and its removal where no drain is recorded any more: the database was lost.
import { CORDONED_BY_DRAIN, DRAIN_TAINT } from '../../model/drain.ts';
import type { Taint } from '../../model/taints.ts';
import type { Cluster, ClusterNode } from '../../ports/cluster.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';

export function drainTaintOf({ taints }: ClusterNode): Taint | undefined {
  return taints.find(({ key }) => key === DRAIN_TAINT.key);
}

/** For a ready machine. True when a change was sent. */
export async function removeLeftDrainTaint(
  reconcile: MachineReconcile,
  cluster: Cluster,
  node: ClusterNode,
): Promise<boolean> {
  const taint = drainTaintOf(node);
  if (taint === undefined) return false;
  const uncordon = taint.value === CORDONED_BY_DRAIN ? { unschedulable: false } : {};
  const change = { removeTaintKeys: [DRAIN_TAINT.key], ...uncordon };
  await cluster.changeNode(node, change, reconcile.context.writeOptions());
  await reconcile.record({
    kind: 'did',
    reason: 'DrainUndone',
    message: `the drain of node ${node.name} was undone: no record says that it is being drained`,
  });
  return true;
}
