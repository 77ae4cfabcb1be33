// SPDX-License-Identifier: Apache-2.0
// joining → ready: the guest is up, its Node appears, gets what its kubelet could not say, and is Ready.
import { TimedOut } from '../../ports/errors.ts';
import type { MachineReconcile, Step } from '../context/machine-reconcile.ts';
import { completeNode, recordDifferences } from '../nodes/complete.ts';
import { findOwnNode } from '../nodes/find-node.ts';
import { learnAllocatable } from '../nodes/learn.ts';
import { recordNode } from '../nodes/record.ts';
import { joinByAgent } from './agent-join.ts';
import { becomeReady } from './become-ready.ts';
import { requireOurs } from './configuring.ts';
import { failMachine } from './fail-machine.ts';
import { isSeenRunning } from './seen-running.ts';
import { lookUpVm } from './vm-lookup.ts';

export async function joining(reconcile: MachineReconcile): Promise<Step> {
  const { clusterReading } = reconcile.context;
  if (clusterReading.kind === 'none') return becomeReady(reconcile);
  const task = await reconcile.pollTask();
  if (task.state === 'running' || clusterReading.kind === 'stale') return 'wait';
  const node = findOwnNode(reconcile);
  if (node === undefined) return awaitNode(reconcile);
  await recordNode(reconcile, node);
  if (await completeNode(reconcile, clusterReading.cluster, node)) return 'wait';
  if (!node.ready || node.isTerminating) return keepRunning(reconcile);
  await recordDifferences(reconcile, node);
  await learnAllocatable(reconcile.context, reconcile.machine, node);
  return becomeReady(reconcile);
}

async function awaitNode(reconcile: MachineReconcile): Promise<Step> {
  const timeoutMs = reconcile.pool?.registrationTimeoutMs ?? Number.POSITIVE_INFINITY;
  // While the cluster could not be read nobody could register either.
  const since = Math.max(reconcile.machine.phaseSince, reconcile.context.state.clusterStaleAt);
  if (reconcile.context.now - since > timeoutMs) {
    const seconds = Math.round(timeoutMs / 1_000);
    const message = `its guest is up, but no Node of it appeared within ${seconds} s`;
    await failMachine(reconcile, new TimedOut('REGISTRATION_TIMED_OUT', message));
    return 'wait';
  }
  const step = await keepRunning(reconcile);
  await joinByAgent(reconcile);
  return step;
}

/** A guest that powered itself off on the way is switched on again. */
async function keepRunning(reconcile: MachineReconcile): Promise<Step> {
  if (isSeenRunning(reconcile)) return 'wait';
  requireOurs(await lookUpVm(reconcile), reconcile);
  const { power } = await reconcile.hypervisor.vmState(reconcile.vm, reconcile.context.readOptions);
  if (power === 'running') return 'wait';
  return reconcile.recordTask(
    await reconcile.hypervisor.startVm(reconcile.vm, reconcile.context.writeOptions),
  );
}
