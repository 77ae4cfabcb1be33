// SPDX-License-Identifier: Apache-2.0
// starting → booting → joining or ready, and what is looked after while a machine is ready.

import type { MachineReconcile, Step } from '../context/machine-reconcile.ts';
import { findOwnNode } from '../nodes/find-node.ts';
import { maintainNode } from '../nodes/maintain-node.ts';
import { becomeReady } from './become-ready.ts';
import { isSeedRemoved, removeSeed, requireOurs } from './configuring.ts';
import { isSeenRunning } from './seen-running.ts';
import { lookUpVm } from './vm-lookup.ts';

export async function starting(reconcile: MachineReconcile): Promise<Step> {
  const task = await reconcile.pollTask();
  if (task.state === 'running') return 'wait';
  const { power } = await reconcile.hypervisor.vmState(reconcile.vm, reconcile.context.readOptions);
  if (power === 'running') return reconcile.move('booting');
  if (task.state === 'ended' && task.failure !== undefined) {
    await reconcile.update({ task: undefined });
    throw task.failure;
  }
  requireOurs(await lookUpVm(reconcile), reconcile);
  return reconcile.recordTask(
    await reconcile.hypervisor.startVm(reconcile.vm, reconcile.context.writeOptions),
  );
}

export async function booting(reconcile: MachineReconcile): Promise<Step> {
  const task = await reconcile.pollTask();
  if (task.state === 'running') return 'wait';
  const next = isToJoin(reconcile) ? () => reconcile.move('joining') : () => becomeReady(reconcile);
  if (hasCome(reconcile)) return next();
  const answer = reconcile.context.state.guestProbes.answerTo({
    machine: reconcile.machine,
    machines: reconcile.context.records.index.inPhase('booting'),
    now: reconcile.context.now,
    ask: () => reconcile.hypervisor.guestIsUp(reconcile.vm, reconcile.context.readOptions),
  });
  if (answer === 'up') return next();
  if (answer === 'unknown' || isSeenRunning(reconcile)) return 'wait';
  const { power } = await reconcile.hypervisor.vmState(reconcile.vm, reconcile.context.readOptions);
  if (power === 'running') return 'wait';
  // A guest that powered itself off while installing is switched on again.
  requireOurs(await lookUpVm(reconcile), reconcile);
  return reconcile.recordTask(
    await reconcile.hypervisor.startVm(reconcile.vm, reconcile.context.writeOptions),
  );
}

/** Where nothing joins, or nobody can see it, a guest that is up is all there is to wait for. */
function isToJoin({ pool, context }: MachineReconcile): boolean {
  return pool?.joins === true && context.cluster !== undefined;
}

/** By its Node, whatever its guest says: one that joins by itself need not have an agent. */
function hasCome(reconcile: MachineReconcile): boolean {
  const node = findOwnNode(reconcile);
  return node !== undefined && (isToJoin(reconcile) || node.ready);
}

export async function ready(reconcile: MachineReconcile): Promise<Step> {
  if ((await isSeedRemoved(reconcile)) && isAsKnown(reconcile)) return found(reconcile);
  const lookup = await lookUpVm(reconcile);
  switch (lookup.kind) {
    case 'ours':
      await removeSeed(reconcile, lookup.config);
      return found(reconcile);
    case 'undecided':
      return 'wait';
    case 'foreign':
      return missing(reconcile, `its VM id is somebody else's: ${lookup.reason}`);
    default:
      return missing(reconcile, 'its VM is gone');
  }
}

/** As far as the overview tells: then nothing more is asked. */
function isAsKnown({ context, placement }: MachineReconcile): boolean {
  const { host, name } = placement;
  const seen = context.vmInView(placement);
  return seen?.host === host && (seen.name ?? name) === name;
}

function found(reconcile: MachineReconcile): Promise<Step> {
  reconcile.context.state.missingSince.delete(reconcile.id);
  return maintainNode(reconcile);
}

/** Not at once: a VM may be on its way between hosts. */
async function missing(reconcile: MachineReconcile, why: string): Promise<Step> {
  const { missingSince } = reconcile.context.state;
  const since = missingSince.get(reconcile.id) ?? reconcile.context.now;
  missingSince.set(reconcile.id, since);
  if (reconcile.context.now - since < reconcile.context.settings.lostAfterMs) return 'wait';
  await reconcile.record({
    kind: 'saw',
    reason: 'MachineLost',
    message: `${reconcile.placement.name}: ${why}`,
  });
  return reconcile.move('deleting', { deletionReason: why });
}
