// SPDX-License-Identifier: Apache-2.0
// joining → ready: waits for the Node, adds what the kubelet could not set, and waits until it is Ready.
import { isTemplateGroup } from '../../model/role.ts';
import { TimedOut } from '../../ports/errors.ts';
import {
  CONTINUE,
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';
import { findOwnNode } from '../nodes/find-node.ts';
import {
  completeNode,
  learnAllocatable,
  recordDifferences,
  recordNode,
} from '../nodes/registration.ts';

import { joinByAgent } from './agent-join.ts';
import { failOverdue, withLastError } from './fail-machine.ts';
import { recordGuestAddresses } from './guest-addresses.ts';
import { becomeReady, startIfStopped } from './own-vm.ts';
import { converting } from './template-build.ts';

/** The cluster is read from the watch cache before each call of the handler, which costs no request. */
const NODE_POLL_MS = 500;
/** After this, a person may want to look into the guest, and needs its address. */
const SLOW_JOIN_MS = 60_000;

export async function joining(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const { clusterReading } = reconcile.context;
  if (isTemplateGroup(reconcile.machine.pool)) return converting(reconcile);
  if (clusterReading.kind === 'none') return becomeReady(reconcile);
  const task = await reconcile.pollTask();
  if (task.state === 'running') return task.wait;
  // Not before: an agent that does not answer would delay the machine.
  if (reconcile.elapsedMs('phaseSince', reconcile.machine.phaseSince) > SLOW_JOIN_MS)
    await recordGuestAddresses(reconcile);
  if (clusterReading.kind === 'stale') return requeue(NODE_POLL_MS, 'Kubernetes cannot be read');
  const node = findOwnNode(reconcile);
  if (node === undefined) return waitForNode(reconcile);
  await recordNode(reconcile, node);
  if (await completeNode(reconcile, clusterReading.cluster, node)) {
    return requeue(NODE_POLL_MS, 'its Node was changed');
  }
  if (!node.ready || node.isTerminating) {
    return (await restartIfStopped(reconcile)) ?? requeue(NODE_POLL_MS, 'its Node is not Ready');
  }
  await recordDifferences(reconcile, node);
  await learnAllocatable(reconcile.context, reconcile.machine, node);
  return becomeReady(reconcile);
}

async function waitForNode(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const timeoutMs = reconcile.pool?.registrationTimeoutMs ?? Number.POSITIVE_INFINITY;
  const { phaseSince } = reconcile.machine;
  if (reconcile.elapsedWhileJoinableMs('phaseSince', phaseSince) > timeoutMs) {
    const seconds = Math.round(timeoutMs / 1_000);
    const message = `the guest was up, but its Node did not appear within ${seconds} s`;
    const error = new TimedOut('REGISTRATION_TIMED_OUT', withLastError(reconcile, message));
    await failOverdue(reconcile, error);
    return CONTINUE;
  }
  const restarted = await restartIfStopped(reconcile);
  if (restarted !== undefined) return restarted;
  await joinByAgent(reconcile);
  return requeue(NODE_POLL_MS, 'its Node has not appeared');
}

/** Starts a guest that was powered off. Files that its agent wrote may be lost, so they are written again. */
async function restartIfStopped(reconcile: MachineReconcile): Promise<ReconcileResult | undefined> {
  const restarted = await startIfStopped(reconcile);
  if (restarted !== undefined) reconcile.context.state.joinedByAgent.delete(reconcile.id);
  return restarted;
}
