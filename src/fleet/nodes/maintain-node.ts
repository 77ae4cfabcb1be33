// SPDX-License-Identifier: Apache-2.0
// A ready machine's Node: known, complete, and there. One that is only not ready is left alone. Machines that nobody
// told to join may have one too, by their image's own doing; whether it comes or goes is nothing to judge them by.

import { isMachineError } from '../context/machine-error.ts';
import type { MachineReconcile, Step } from '../context/machine-reconcile.ts';
import { completeNode } from './complete.ts';
import { findNode } from './find-node.ts';
import { recordNode } from './record.ts';

export async function maintainNode(reconcile: MachineReconcile): Promise<Step> {
  const { context } = reconcile;
  const { clusterReading } = context;
  if (clusterReading.kind !== 'fresh' || reconcile.pool === undefined) return 'wait';
  const node = findNode(reconcile.machine, clusterReading.view.nodes, context.records.index);
  if (node === undefined) return reconcile.pool.joins ? missingNode(reconcile) : 'wait';
  context.state.nodeMissingSince.delete(reconcile.id);
  await recordNode(reconcile, node);
  await completeNode(reconcile, clusterReading.cluster, node);
  return 'wait';
}

/** Only a Node that was there once can be missed; whether it is gone is asked again before it costs the machine. */
async function missingNode(reconcile: MachineReconcile): Promise<Step> {
  const { context, machine } = reconcile;
  if (machine.nodeName === undefined) return 'wait';
  const { nodeMissingSince, clusterStaleAt } = context.state;
  const since = Math.max(nodeMissingSince.get(reconcile.id) ?? context.now, clusterStaleAt);
  nodeMissingSince.set(reconcile.id, since);
  if (context.now - since < context.settings.nodeLostAfterMs) return 'wait';
  if (!(await isReallyMissing(reconcile))) return 'wait';
  const why = `its Node ${machine.nodeName} is gone`;
  await reconcile.record({
    kind: 'saw',
    reason: 'MachineLost',
    message: `${reconcile.placement.name}: ${why}`,
  });
  nodeMissingSince.delete(reconcile.id);
  return reconcile.move('deleting', { deletionReason: why });
}

async function isReallyMissing(reconcile: MachineReconcile): Promise<boolean> {
  try {
    const view = await reconcile.context.cluster?.refresh(reconcile.context.readOptions);
    if (view === undefined) return false;
    return findNode(reconcile.machine, view.nodes, reconcile.context.records.index) === undefined;
  } catch (error) {
    if (isMachineError(error)) return false;
    throw error;
  }
}
