// SPDX-License-Identifier: Apache-2.0
// deleting → gone, or failed where a creation failed. Mark, shut down, stop, destroy, verify, then everything
// else that belonged to the machine. A VM that is not ours is left alone; the machine ends without it.

import { isMachineError } from '../context/machine-error.ts';
import type { MachineReconcile, Step } from '../context/machine-reconcile.ts';
import { removeNode } from '../nodes/remove.ts';
import { isUploadInProgress } from './configuring.ts';
import { isCloneInProgress } from './creating.ts';
import { writeMilestone } from './milestone.ts';
import { seedHost } from './seed-host.ts';
import { lookUpVm, type VmLookup } from './vm-lookup.ts';

/** After so many troubles a guest is not asked any more. */
const MAX_SHUTDOWN_ATTEMPTS = 3;
const LOCK_RECHECK_MS = 10_000;

export async function deleting(reconcile: MachineReconcile): Promise<Step> {
  if (reconcile.machine.placement === undefined) return finishDeletion(reconcile);
  const task = await reconcile.pollTask();
  if (task.state === 'running') return 'wait';
  if (task.state === 'ended' && task.type === 'qmdestroy')
    await recordWarnings(reconcile, task.warnings);
  if (reconcile.machine.task !== undefined) await reconcile.update({ task: undefined });
  const lookup = await lookUpVm(reconcile);
  switch (lookup.kind) {
    case 'ours':
      return remove(reconcile, lookup, task.state === 'ended' ? task.type : undefined);
    case 'undecided':
      return waitForLock(reconcile, lookup.lock);
    case 'foreign':
      await recordLeftAlone(reconcile, lookup.reason);
      return finishDeletion(reconcile, { keepsNode: lookup.isSameVm });
    default:
      return (await isCloneInProgress(reconcile, reconcile.pool))
        ? 'wait'
        : finishDeletion(reconcile);
  }
}

async function remove(
  reconcile: MachineReconcile,
  lookup: Extract<VmLookup, { kind: 'ours' }>,
  lastTask: string | undefined,
): Promise<Step> {
  await writeMilestone(reconcile, lookup, 'deletingSinceSeconds');
  const { power } = await reconcile.hypervisor.vmState(reconcile.vm, reconcile.context.readOptions);
  if (power === 'stopped') {
    // The VM goes last: as long as it is there, whoever finds it knows what else belonged to it.
    if (reconcile.machine.seedVolume !== undefined) {
      if (await isUploadInProgress(reconcile)) return 'wait';
      await deleteSeed(reconcile);
      // That may have waited for a lock, time enough for the id to change hands: nothing is destroyed unseen.
      return 'again';
    }
    return reconcile.recordTask(
      await reconcile.hypervisor.destroyVm(reconcile.vm, reconcile.context.writeOptions),
    );
  }
  const { mode, shutdownTimeoutMs } = reconcile.pool?.deletion ?? {
    mode: 'stop',
    shutdownTimeoutMs: 0,
  };
  const isAsked = lastTask === 'qmshutdown' || reconcile.machine.attempts >= MAX_SHUTDOWN_ATTEMPTS;
  if (mode === 'stop' || isAsked) {
    return reconcile.recordTask(
      await reconcile.hypervisor.stopVm(reconcile.vm, reconcile.context.writeOptions),
    );
  }
  return reconcile.recordTask(
    await reconcile.hypervisor.shutdownVm(
      reconcile.vm,
      shutdownTimeoutMs,
      reconcile.context.writeOptions,
    ),
  );
}

const LOG_LINES = 50;

/** A disk that cannot be removed is only warned about, and stays when its VM is gone: nobody else will say so. */
async function recordWarnings(reconcile: MachineReconcile, warnings: number): Promise<void> {
  const { task } = reconcile.machine;
  if (warnings === 0 || task === undefined) return;
  // The log is for the words; without it the warning is still one.
  const log = await reconcile.hypervisor
    .taskLog(task, LOG_LINES, reconcile.context.readOptions)
    .catch((error: unknown) => {
      if (isMachineError(error)) return [];
      throw error;
    });
  const words = log.filter((line) => /WARN|Could not/i.test(line)).join('; ');
  const { vmId, host } = reconcile.vm;
  await reconcile.record({
    kind: 'saw',
    reason: 'DestroyedWithWarnings',
    message: `VM ${vmId} was destroyed on ${host} with ${warnings} warnings, see whether its disks are gone: ${words || task.upid}`,
    numbers: { vmId, warnings },
  });
}

/** A VM whose creation died keeps its lock; only root can take it away. Told, and looked at again. */
async function waitForLock(reconcile: MachineReconcile, lock: string): Promise<Step> {
  const { vmId, host } = reconcile.vm;
  const running = await reconcile.hypervisor.runningTasks(
    host,
    `qm${lock}`,
    reconcile.context.readOptions,
  );
  if (running.length === 0 && !(await isCloneInProgress(reconcile, reconcile.pool))) {
    await reconcile.context.recordOnce(reconcile.id, {
      kind: 'failed',
      subject: { pool: reconcile.machine.pool, machine: reconcile.id, host },
      reason: 'HalfMadeVm',
      message: `VM ${vmId} has the lock '${lock}' and no task of ours makes it; unless somebody else does, run 'qm unlock ${vmId}' and 'qm destroy ${vmId} --destroy-unreferenced-disks 1' on ${host}`,
    });
    const { backoffs } = reconcile.context.state;
    backoffs.set(reconcile.id, { until: reconcile.context.now + LOCK_RECHECK_MS, count: 0 });
  }
  return 'wait';
}

function recordLeftAlone(reconcile: MachineReconcile, reason: string): Promise<void> {
  return reconcile.record({
    kind: 'refused',
    reason: 'VmNotOurs',
    message: `VM ${reconcile.vm.vmId} is left alone: ${reason}`,
    numbers: { vmId: reconcile.vm.vmId },
  });
}

/** Nothing of the VM is left; or it is somebody else's now, and so is its Node. */
async function finishDeletion(
  reconcile: MachineReconcile,
  { keepsNode } = { keepsNode: false },
): Promise<Step> {
  await deleteSeed(reconcile);
  if (!keepsNode && (await removeNode(reconcile)) === 'wait') return 'wait';
  await reconcile.context.records.releaseAddresses(reconcile.id);
  const { failure, deletionReason, placement } = reconcile.machine;
  const name = placement?.name ?? reconcile.id;
  await reconcile.move(failure === undefined ? 'gone' : 'failed');
  await reconcile.record(
    failure === undefined
      ? {
          kind: 'did',
          reason: 'MachineGone',
          message: `${name} is gone: ${deletionReason ?? 'asked for'}`,
        }
      : {
          kind: 'failed',
          reason: 'MachineFailed',
          message: `${name}: ${failure.message}; nothing of it is left`,
        },
  );
  return 'wait';
}

async function deleteSeed(reconcile: MachineReconcile): Promise<void> {
  const { placement, seedVolume } = reconcile.machine;
  if (placement === undefined || seedVolume === undefined) return;
  await reconcile.hypervisor.deleteVolume(
    seedHost(reconcile),
    seedVolume,
    reconcile.context.writeOptions,
  );
  await reconcile.update({ seedVolume: undefined });
}
