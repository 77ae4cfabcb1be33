// SPDX-License-Identifier: Apache-2.0
// deleting → gone, or failed where the creation failed. Marks the VM, shuts it down, stops and destroys it, verifies
// that it is gone, then removes everything else that belonged to the machine. A VM that is not ours is left alone.
import type { Machine, Placement, TaskKind } from '../../model/machine.ts';
import type { PvescalerError } from '../../ports/errors.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import { isDestroyLimited } from '../capacity/deletion-limits.ts';
import { isMachineError, isVmGone } from '../context/machine-error.ts';
import {
  CONTINUE,
  DONE,
  type MachineReconcile,
  type ReconcileResult,
  requeue,
  taskRefOf,
} from '../context/machine-reconcile.ts';

import { removeNode } from '../nodes/remove.ts';
import { isCloneInProgress, isOwnCreationRunning, type OtherVm } from './create-vm.ts';
import { captureDiagnostics } from './guest-diagnostics.ts';
import {
  halfMadeVmMessage,
  isOwnerUnknownFor,
  lookUpVm,
  type OwnVm,
  writeMilestone,
} from './own-vm.ts';
import { deleteJoinTokens } from './seed.ts';
import { deleteSeed, isUploadInProgress } from './seed-volume.ts';

/** After this many errors the VM is stopped without a shutdown. */
const MAX_SHUTDOWN_ATTEMPTS = 3;
const RECHECK_MS = 1_000;
const LOCK_RECHECK_MS = 10_000;
const MAX_UNREADABLE_MS = 60_000;
const WAIT_FOR_OTHERS = requeue(500, 'other deletions are running on its host or storage');

export async function deleting(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const { awaitingDestroy } = reconcile.context.state;
  // Without a request, because many machines may wait.
  if (awaitingDestroy.has(reconcile.id) && isLimited(reconcile)) return WAIT_FOR_OTHERS;
  awaitingDestroy.delete(reconcile.id);
  return continueDeleting(reconcile);
}

async function continueDeleting(reconcile: MachineReconcile): Promise<ReconcileResult> {
  if (reconcile.machine.placement === undefined) return finishDeletion(reconcile);
  const task = await reconcile.pollTask(isUnimportant);
  if (task.state === 'running') return task.wait;
  if (task.state === 'ended' && task.kind === 'destroy') {
    await recordWarnings(reconcile, task.warnings);
  }
  if (reconcile.machine.task !== undefined) await reconcile.update({ task: undefined });
  const lookup = await lookUpVm(reconcile);
  return lookup.kind === 'ours'
    ? removeVm(reconcile, lookup, task.state === 'ended' ? task.kind : undefined)
    : finishWithoutVm(reconcile, lookup);
}

async function finishWithoutVm(
  reconcile: MachineReconcile,
  lookup: OtherVm,
): Promise<ReconcileResult> {
  switch (lookup.kind) {
    case 'undecided':
      return waitForLock(reconcile, lookup.lock);
    case 'unreadable':
      return handleUnreadable(reconcile, lookup.error);
    case 'foreign':
      await (lookup.isSameVm ? recordLeftBehind : recordLeftAlone)(reconcile, lookup.reason);
      return finishDeletion(reconcile, { isVmLeft: lookup.isSameVm });
    case 'absent':
      return finishUnlessCloning(reconcile);
  }
}

/**
 * A VM that was not shut down is stopped next. Tasks of earlier phases do not matter any more, and a VM that another
 * user destroyed is gone.
 */
function isUnimportant(failure: PvescalerError, kind: TaskKind): boolean {
  return !['stop', 'destroy', 'other'].includes(kind) || isVmGone(failure);
}

/** A clone that still runs would create the VM after its deletion. */
async function finishUnlessCloning(reconcile: MachineReconcile): Promise<ReconcileResult> {
  return (await isCloneInProgress(reconcile, reconcile.pool))
    ? requeue(RECHECK_MS, 'a clone of its template is still running')
    : finishDeletion(reconcile);
}

async function removeVm(
  reconcile: MachineReconcile,
  ownVm: OwnVm,
  lastTask: TaskKind | undefined,
): Promise<ReconcileResult> {
  await writeMilestone(reconcile, ownVm, 'deletingSinceSeconds');
  const { readOptions } = reconcile.context;
  const { power } = await reconcile.hypervisor.vmState(reconcile.vm, readOptions);
  // The guest may have taken long to answer, and the VM id may have a new owner: look it up again.
  if (await captureDiagnostics(reconcile, power)) return CONTINUE;
  if (power === 'running') return stop(reconcile, lastTask);
  return isToBeKept(reconcile) ? keep(reconcile, ownVm.config) : destroy(reconcile);
}

/** Once: a kept machine that is deleted later is not kept again. */
function isToBeKept({ machine, pool }: MachineReconcile): boolean {
  const isExaminable = machine.diagnostics !== undefined && machine.phaseTimes?.kept === undefined;
  return isExaminable && machine.isSelftest !== true && (pool?.keepFailed ?? 0) > 0;
}

/**
 * Leaves the stopped VM, without everything that is secret or that others could take for a machine. It keeps its VM id,
 * addresses and share of the host. Its deletion mark stays: after a loss of the database it is deleted.
 */
async function keep(reconcile: MachineReconcile, config: VmConfig): Promise<ReconcileResult> {
  const { machine, context, hypervisor, vm } = reconcile;
  if (machine.seedVolume !== undefined) {
    if (await isUploadInProgress(reconcile)) {
      return requeue(RECHECK_MS, 'an upload of its seed may be running');
    }
    if (config.seedVolume === machine.seedVolume) {
      // The drive is emptied first: a VM whose ISO is missing cannot be started.
      await hypervisor.ejectSeed(vm, { digest: config.digest, ...context.writeOptions() });
    }
    await deleteSeed(reconcile);
  }
  if (!(await removeNode(reconcile))) return requeue(RECHECK_MS, 'its Node cannot be checked');
  await deleteJoinTokens(reconcile);
  await reconcile.move('kept');
  await reconcile.record({
    kind: 'saw',
    reason: 'MachineKept',
    message: `${reconcile.placement.name} failed, and VM ${vm.vmId} on host ${vm.host} is kept stopped to be examined; pvescaler machine delete ${reconcile.placement.name} removes it`,
    numbers: { vmId: vm.vmId },
  });
  return DONE;
}

/** The VM goes last: as long as it exists, its marker shows what else belongs to the machine. */
async function destroy(reconcile: MachineReconcile): Promise<ReconcileResult> {
  if (reconcile.machine.seedVolume !== undefined) {
    if (await isUploadInProgress(reconcile)) {
      return requeue(RECHECK_MS, 'an upload of its seed may be running');
    }
    await deleteSeed(reconcile);
    // The deletion may have waited for a lock, and the VM id may have a new owner: look it up again.
    return CONTINUE;
  }
  const { hypervisor, vm, context, id } = reconcile;
  const { destroying, awaitingDestroy } = context.state;
  if (isLimited(reconcile)) {
    awaitingDestroy.add(id);
    return WAIT_FOR_OTHERS;
  }
  // Counts before the task is recorded: machines are reconciled concurrently.
  destroying.add(id);
  try {
    return await reconcile.recordTask(await hypervisor.destroyVm(vm, context.writeOptions()));
  } finally {
    destroying.delete(id);
  }
}

function isLimited({ context, placement, id }: MachineReconcile): boolean {
  return isDestroyLimited(context, placement, id);
}

async function stop(
  reconcile: MachineReconcile,
  lastTask: TaskKind | undefined,
): Promise<ReconcileResult> {
  const { hypervisor, vm, machine, context } = reconcile;
  const deletion = reconcile.pool?.deletion ?? { mode: 'stop', shutdownTimeoutMs: 0 };
  const hasTriedShutdown = lastTask === 'shutdown' || machine.attempts >= MAX_SHUTDOWN_ATTEMPTS;
  const task =
    deletion.mode === 'stop' || hasTriedShutdown
      ? await hypervisor.stopVm(vm, context.writeOptions())
      : await hypervisor.shutdownVm(vm, deletion.shutdownTimeoutMs, context.writeOptions());
  return reconcile.recordTask(task);
}

const LOG_LINES = 50;

/** Proxmox only warns about a disk that it cannot remove; the disk stays after its VM is gone. */
async function recordWarnings(reconcile: MachineReconcile, warnings: number): Promise<void> {
  const { task, placement } = reconcile.machine;
  if (warnings === 0 || task === undefined || placement === undefined) return;
  // Without the log the warning is recorded all the same.
  const log = await reconcile.hypervisor
    .taskLog(taskRefOf(task, placement), LOG_LINES, reconcile.context.readOptions)
    .catch((error: unknown) => {
      if (isMachineError(error)) return [];
      throw error;
    });
  const lines = log.filter((line) => /WARN|Could not/i.test(line)).join('; ');
  const { vmId, host } = reconcile.vm;
  await reconcile.record({
    kind: 'saw',
    reason: 'DestroyedWithWarnings',
    message: `VM ${vmId} was destroyed on ${host} with ${warnings} warnings; check that its disks are gone: ${lines || task.upid}`,
    numbers: { vmId, warnings },
  });
}

/** A VM whose creation died keeps its lock, which only root can remove. */
async function waitForLock(reconcile: MachineReconcile, lock: string): Promise<ReconcileResult> {
  const { vmId, host } = reconcile.vm;
  if (await isCreationRunning(reconcile)) {
    return requeue(RECHECK_MS, `VM ${vmId} is being created (lock ${lock})`);
  }
  await reconcile.context.recordOnce(reconcile.id, {
    kind: 'failed',
    subject: { pool: reconcile.machine.pool, machine: reconcile.id, host },
    reason: 'HalfMadeVm',
    message: halfMadeVmMessage(reconcile.vm, lock),
  });
  return requeue(LOCK_RECHECK_MS, `VM ${vmId} keeps its lock (${lock})`);
}

/** A clone task does not name the VM that it creates: any clone on the host may be the one. */
async function isCreationRunning(reconcile: MachineReconcile): Promise<boolean> {
  if (await isOwnCreationRunning(reconcile)) return true;
  const { hypervisor, vm, context } = reconcile;
  return (await hypervisor.runningTasks(vm.host, 'clone', context.readOptions)).length > 0;
}

/**
 * Nothing is decided for a minute: a host whose cluster file system restarts refuses everything for a moment. A VM that
 * was never seen as ours is another user's; if it is ours after all, it is found as an orphan once it can be read.
 */
async function handleUnreadable(
  reconcile: MachineReconcile,
  error: PvescalerError,
): Promise<ReconcileResult> {
  if (!isOwnerUnknownFor(reconcile, MAX_UNREADABLE_MS)) throw error;
  if (reconcile.machine.configured !== true && !(await isOwnCreationRunning(reconcile))) {
    await recordLeftAlone(
      reconcile,
      `it was never configured and cannot be read: ${error.message}`,
    );
    return finishDeletion(reconcile);
  }
  const { vmId, host } = reconcile.vm;
  await reconcile.context.recordOnce(reconcile.id, {
    kind: 'failed',
    subject: { pool: reconcile.machine.pool, machine: reconcile.id, host },
    reason: 'VmUnreadable',
    message: `VM ${vmId} cannot be deleted because it cannot be read: ${error.message}; grant VM.Audit, VM.Config.Options, VM.PowerMgmt and VM.Allocate on /vms/${vmId}`,
  });
  return requeue(LOCK_RECHECK_MS, `VM ${vmId} cannot be read`);
}

/** It is still the machine's VM, but nothing proves it any more: a person has to decide. */
function recordLeftBehind(reconcile: MachineReconcile, reason: string): Promise<void> {
  const { vmId } = reconcile.vm;
  return reconcile.record({
    kind: 'refused',
    reason: 'VmLeftBehind',
    message: `VM ${vmId} still exists and was not deleted: ${reason}; run pvescaler orphans adopt ${vmId} to make it a machine again, or pvescaler orphans forget ${vmId} to keep it as it is`,
    numbers: { vmId },
  });
}

function recordLeftAlone(reconcile: MachineReconcile, reason: string): Promise<void> {
  return reconcile.record({
    kind: 'refused',
    reason: 'VmNotOurs',
    message: `VM ${reconcile.vm.vmId} is left alone: ${reason}`,
    numbers: { vmId: reconcile.vm.vmId },
  });
}

/** A VM that was left alone keeps its addresses; they are released when it is gone. */
function addressesLeft(placement: Placement | undefined): Pick<Machine, 'isVmLeft'> {
  return (placement?.addresses.length ?? 0) > 0 ? { isVmLeft: true } : {};
}

/** The VM is gone, or it is not ours any more, and then neither is its Node. */
async function finishDeletion(
  reconcile: MachineReconcile,
  { isVmLeft } = { isVmLeft: false },
): Promise<ReconcileResult> {
  await deleteSeed(reconcile);
  if (!isVmLeft && !(await removeNode(reconcile))) {
    return requeue(RECHECK_MS, 'its Node cannot be checked');
  }
  await deleteJoinTokens(reconcile);
  const { failure, deletionReason, placement } = reconcile.machine;
  const name = placement?.name ?? reconcile.id;
  await reconcile.move(
    failure === undefined ? 'gone' : 'failed',
    isVmLeft ? addressesLeft(placement) : {},
  );
  await reconcile.record(
    failure === undefined
      ? {
          kind: 'did',
          reason: 'MachineGone',
          message: `${name} was deleted: ${deletionReason ?? 'requested'}`,
        }
      : {
          kind: 'failed',
          reason: 'MachineFailed',
          message: `${name} failed and was removed: ${failure.message}`,
        },
  );
  return DONE;
}
