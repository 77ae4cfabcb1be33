// SPDX-License-Identifier: Apache-2.0
// booting → joining, or ready where nothing joins: waits until the guest agent answers or the Node appears.
import { isTemplateGroup } from '../../model/role.ts';
import {
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';

import { findOwnNode } from '../nodes/find-node.ts';
import { recordGuestAddresses } from './guest-addresses.ts';
import { becomeReady, startIfStopped } from './own-vm.ts';
import { building } from './template-build.ts';

const NODE_POLL_MS = 500;

export async function booting(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const task = await reconcile.pollTask();
  if (task.state === 'running') return task.wait;
  if (isTemplateGroup(reconcile.machine.pool)) return building(reconcile);
  if (hasNode(reconcile)) return leaveBooting(reconcile);
  const { bootTimes } = reconcile.context.state;
  const { pool } = reconcile.machine;
  if (bootTimes.isDue(pool, sinceStartMs(reconcile))) {
    const { readOptions } = reconcile.context;
    const queriedMs = sinceStartMs(reconcile);
    if (await reconcile.hypervisor.guestIsUp(reconcile.vm, readOptions)) {
      bootTimes.booted(pool, sinceStartMs(reconcile));
      // Its agent answers; a command that waits for a machine without a Node ends when it is ready.
      if (!joinsCluster(reconcile)) await recordGuestAddresses(reconcile);
      return leaveBooting(reconcile);
    }
    bootTimes.notUp(pool, queriedMs);
    // A guest that powered itself off during its installation is started again.
    const restarted = await startIfStopped(reconcile);
    if (restarted !== undefined) return restarted;
  }
  return requeue(nextCheckMs(reconcile), 'its guest is booting');
}

/** Before the first query the Node is watched for, which costs no request. */
function nextCheckMs(reconcile: MachineReconcile): number {
  const { bootTimes } = reconcile.context.state;
  const { pool } = reconcile.machine;
  const sinceMs = sinceStartMs(reconcile);
  const queryMs = bootTimes.nextQueryMs(pool, sinceMs);
  const watchesNode = joinsCluster(reconcile) && !bootTimes.isDue(pool, sinceMs);
  return watchesNode ? Math.min(queryMs, NODE_POLL_MS) : queryMs;
}

function sinceStartMs(reconcile: MachineReconcile): number {
  return reconcile.elapsedMs('phaseSince', reconcile.machine.phaseSince);
}

function leaveBooting(reconcile: MachineReconcile): Promise<ReconcileResult> {
  return joinsCluster(reconcile) ? reconcile.move('joining') : becomeReady(reconcile);
}

/** Without join settings or access to the cluster, a guest that is up makes the machine ready. */
function joinsCluster({ pool, context }: MachineReconcile): boolean {
  return pool?.joins === true && context.cluster !== undefined;
}

/** A guest that joins by itself need not have an agent: its Node is enough. */
function hasNode(reconcile: MachineReconcile): boolean {
  const node = findOwnNode(reconcile);
  return node !== undefined && (joinsCluster(reconcile) || node.ready);
}
