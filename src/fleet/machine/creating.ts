// SPDX-License-Identifier: Apache-2.0
// creating → configuring. The phase is recorded before the call that creates the VM; from then on only the VM itself
// shows whether it was created. Calling again is safe: Proxmox gives out an id once and refuses the second call, and the
// VM's marker shows whose the first one was.
import { NotFound, type PvescalerError } from '../../ports/errors.ts';
import {
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';

import { isCloneInProgress, isVmIdTaken, releaseVmId, startCreation } from './create-vm.ts';
import { lookUpVm } from './own-vm.ts';

const RECHECK_MS = 1_000;

export async function creating(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const task = await reconcile.pollTask();
  if (task.state === 'running') return task.wait;
  if (task.state === 'ended' && task.failure !== undefined && !isVmIdTaken(task.failure)) {
    await reconcile.update({ task: undefined });
    throw task.failure;
  }
  const lookup = await lookUpVm(reconcile);
  switch (lookup.kind) {
    case 'ours':
      return reconcile.move('configuring');
    case 'undecided':
      return requeue(RECHECK_MS, `VM ${reconcile.vm.vmId} is locked (${lookup.lock})`);
    case 'foreign':
      return releaseVmId(reconcile, lookup.reason);
    case 'absent':
      return task.state === 'ended'
        ? handleVanishedVm(reconcile, task.failure)
        : retryCreation(reconcile);
  }
}

/** The task has ended and there is no VM: the id belongs to a container, or the VM was removed at once. */
async function handleVanishedVm(
  reconcile: MachineReconcile,
  failure: PvescalerError | undefined,
): Promise<ReconcileResult> {
  if (failure !== undefined) return releaseVmId(reconcile, 'it is in use, but not by a VM');
  await reconcile.update({ task: undefined });
  throw new NotFound('VM_NOT_FOUND', `VM ${reconcile.vm.vmId} was created and is gone again`);
}

async function retryCreation(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const pool = reconcile.requirePool();
  if (await isCloneInProgress(reconcile, pool)) {
    return requeue(RECHECK_MS, 'a clone of its template is still running');
  }
  return startCreation(reconcile, pool);
}
