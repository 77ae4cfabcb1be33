// SPDX-License-Identifier: Apache-2.0
// Keeps a ready machine's Node recorded and complete, and notices when it is gone. A Node that is only NotReady is left
// alone. A machine of a pool without join settings may have a Node too; losing that one has no consequence.
import type { Machine } from '../../model/machine.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { isMachineError } from '../context/machine-error.ts';
import { DONE, type MachineReconcile, type ReconcileResult } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { removeLeftDrainTaint } from './drain-taint.ts';
import { findNode } from './find-node.ts';
import { mayDeleteLost } from './lost-machines.ts';
import { completeNode, recordNode, refreshZone } from './registration.ts';

export async function maintainNode(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const { context } = reconcile;
  const { clusterReading, records, state } = context;
  // The Node of a hand-made VM is the person's who joined it.
  if (clusterReading.kind !== 'fresh' || reconcile.role !== undefined) return DONE;
  if (reconcile.pool === undefined) return DONE;
  const node = findNode(reconcile.machine, clusterReading.view.nodes, records.index);
  if (node === undefined) return reconcile.pool.joins ? handleMissingNode(reconcile) : DONE;
  state.nodeMissingSince.delete(reconcile.id);
  await recordNode(reconcile, node);
  const isChanged =
    (await removeLeftDrainTaint(reconcile, clusterReading.cluster, node)) ||
    (await completeNode(reconcile, clusterReading.cluster, node)) ||
    (await refreshZone(reconcile, clusterReading.cluster, node));
  if (!isChanged)
    state.settledNodes.set(node, { machine: reconcile.machine, pool: reconcile.pool });
  return DONE;
}

/** Whether `maintainNode` has nothing to do: Node, record and pool are those that it last ran with. */
export function isNodeSettled(
  { clusterReading, records, settings, state }: ReconcileContext,
  machine: Machine,
): boolean {
  const pool = settings.pools[machine.pool];
  if (clusterReading.kind !== 'fresh' || pool === undefined) return true;
  const node = findNode(machine, clusterReading.view.nodes, records.index);
  if (node === undefined) return !pool.joins || machine.nodeName === undefined;
  const settled = state.settledNodes.get(node);
  const isSettled = settled?.machine === machine && settled.pool === pool;
  return isSettled && !state.nodeMissingSince.has(machine.id);
}

/** Only a Node that existed can be missing; a fresh read confirms it before the machine is deleted. */
async function handleMissingNode(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const { context, machine } = reconcile;
  if (machine.nodeName === undefined) return DONE;
  const { nodeMissingSince, clusterStaleAt } = context.state;
  const now = context.clock.monotonic();
  const since = Math.max(nodeMissingSince.get(reconcile.id) ?? now, clusterStaleAt);
  nodeMissingSince.set(reconcile.id, since);
  if (now - since < context.settings.nodeLostAfterMs) return DONE;
  if (!(await mayDeleteLost(reconcile))) return DONE;
  const nodes = await refreshNodes(reconcile);
  if (nodes === undefined || findNode(machine, nodes, context.records.index) !== undefined) {
    return DONE;
  }
  if (!(await mayDeleteLost(reconcile, nodes))) return DONE;
  const why = `its Node ${machine.nodeName} is gone`;
  await reconcile.record({
    kind: 'saw',
    reason: 'MachineLost',
    message: `${reconcile.placement.name}: ${why}`,
  });
  nodeMissingSince.delete(reconcile.id);
  return reconcile.move('deleting', { deletionReason: why });
}

/** Undefined when Kubernetes cannot be read now. */
async function refreshNodes({
  context: { cluster, readOptions },
}: MachineReconcile): Promise<readonly ClusterNode[] | undefined> {
  try {
    return (await cluster?.refresh(readOptions))?.nodes;
  } catch (error) {
    if (isMachineError(error)) return undefined;
    throw error;
  }
}
