// SPDX-License-Identifier: Apache-2.0
// creating → configuring. The phase is recorded before the call that creates the VM; from then on only the VM itself
// shows whether it was created. Calling again is safe: Proxmox gives out an id once and refuses the second call, and the
// VM's marker shows whose the first one was.
import { NotFound, type PvescalerError } from '../../ports/errors.ts';
import { markStorageFull } from '../capacity/place.ts';
import {
  DONE,
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';

import {
  handleVmIdTaken,
  isCloneInProgress,
  isVmIdTaken,
  type OtherVm,
  releaseVmId,
  startCreation,
} from './create-vm.ts';
import { lookUpVm } from './own-vm.ts';

const RECHECK_MS = 1_000;

export async function creating(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const task = await reconcile.pollTask(isHandled);
  if (task.state === 'running') return task.wait;
  const failure = task.state === 'ended' ? task.failure : undefined;
  if (failure?.code === 'NO_STORAGE_SPACE') {
    await reconcile.update({ task: undefined });
    return placeElsewhere(reconcile, failure);
  }
  const lookup = await lookUpVm(reconcile);
  if (lookup.kind === 'ours') return reconcile.move('configuring');
  if (failure !== undefined) return handleVmIdTaken(reconcile, lookup);
  return task.state === 'ended'
    ? handleLostVm(reconcile, lookup)
    : continueCreation(reconcile, lookup);
}

/** Failures after which the machine is placed again. */
function isHandled(failure: PvescalerError): boolean {
  return isVmIdTaken(failure) || failure.code === 'NO_STORAGE_SPACE';
}

/** A task that fails removes its VM; otherwise the machine is not placed again. */
async function placeElsewhere(
  reconcile: MachineReconcile,
  failure: PvescalerError,
): Promise<ReconcileResult> {
  if ((await lookUpVm(reconcile)).kind !== 'absent') throw failure;
  const { context, placement, id } = reconcile;
  markStorageFull(context, placement);
  context.state.noSpaceErrors.set(id, failure);
  await reconcile.record({
    kind: 'saw',
    reason: 'StorageFull',
    message: `storage ${placement.diskStorage} on host ${placement.host} is full, trying another one: ${failure.message}`,
  });
  await reconcile.move('requested');
  return DONE;
}

/** The task has created a VM that is not ours. */
async function handleLostVm(
  reconcile: MachineReconcile,
  lookup: OtherVm,
): Promise<ReconcileResult> {
  if (lookup.kind === 'unreadable') throw lookup.error;
  if (lookup.kind !== 'absent') return continueCreation(reconcile, lookup);
  await reconcile.update({ task: undefined });
  throw new NotFound('VM_NOT_FOUND', `VM ${reconcile.vm.vmId} was created and is gone again`);
}

async function continueCreation(
  reconcile: MachineReconcile,
  lookup: OtherVm,
): Promise<ReconcileResult> {
  switch (lookup.kind) {
    case 'undecided':
      return requeue(RECHECK_MS, `VM ${reconcile.vm.vmId} is locked (${lookup.lock})`);
    case 'foreign':
      return releaseVmId(reconcile, lookup.reason);
    // The call is refused if the VM exists.
    case 'unreadable':
    case 'absent':
      return retryCreation(reconcile);
  }
}

async function retryCreation(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const pool = reconcile.requirePool();
  if (await isCloneInProgress(reconcile, pool)) {
    return requeue(RECHECK_MS, 'a clone of its template is still running');
  }
  return startCreation(reconcile, pool);
}
