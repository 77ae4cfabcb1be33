// SPDX-License-Identifier: Apache-2.0
// deleting → gone, or failed where a creation failed. Mark, shut down, stop, destroy, verify, then everything
// else that belonged to the machine. A VM that is not ours is left alone; the machine ends without it.
import { removeNode } from '../nodes/remove.ts';
import { isLocalTrouble } from '../trouble.ts';
import { isUploadUnderWay } from './configuring.ts';
import { isCloneUnderWay } from './creating.ts';
import type { Job, Step } from './job.ts';
import { look, type Sight } from './look.ts';
import { mark } from './mark.ts';
import { seedHost } from './seed-host.ts';

/** After so many troubles a guest is not asked any more. */
const PATIENCE = 3;
const LOOK_AGAIN_MS = 10_000;

export async function deleting(job: Job): Promise<Step> {
  if (job.machine.placement === undefined) return over(job);
  const task = await job.task();
  if (task.state === 'running') return 'wait';
  if (task.state === 'ended' && task.type === 'qmdestroy') await tellWarnings(job, task.warnings);
  if (job.machine.task !== undefined) await job.update({ task: undefined });
  const sight = await look(job);
  switch (sight.kind) {
    case 'ours':
      return remove(job, sight, task.state === 'ended' ? task.type : undefined);
    case 'undecided':
      return awaitDecision(job, sight.lock);
    case 'foreign':
      await tellLeftAlone(job, sight.reason);
      return over(job, { keepsNode: sight.isSameVm });
    default:
      return (await isCloneUnderWay(job, job.pool)) ? 'wait' : over(job);
  }
}

async function remove(
  job: Job,
  sight: Extract<Sight, { kind: 'ours' }>,
  lastTask: string | undefined,
): Promise<Step> {
  await mark(job, sight, 'deletingSinceSeconds');
  const { power } = await job.hypervisor.vmState(job.vm, job.turn.reading);
  if (power === 'stopped') {
    // The VM goes last: as long as it is there, whoever finds it knows what else belonged to it.
    if (job.machine.seedVolume !== undefined) {
      if (await isUploadUnderWay(job)) return 'wait';
      await deleteSeed(job);
      // That may have waited for a lock, time enough for the id to change hands: nothing is destroyed unseen.
      return 'again';
    }
    return job.started(await job.hypervisor.destroyVm(job.vm, job.turn.acting));
  }
  const { mode, shutdownTimeoutMs } = job.pool?.deletion ?? { mode: 'stop', shutdownTimeoutMs: 0 };
  const isAsked = lastTask === 'qmshutdown' || job.machine.attempts >= PATIENCE;
  if (mode === 'stop' || isAsked) {
    return job.started(await job.hypervisor.stopVm(job.vm, job.turn.acting));
  }
  return job.started(await job.hypervisor.shutdownVm(job.vm, shutdownTimeoutMs, job.turn.acting));
}

const LOG_LINES = 50;

/** A disk that cannot be removed is only warned about, and stays when its VM is gone: nobody else will say so. */
async function tellWarnings(job: Job, warnings: number): Promise<void> {
  const { task } = job.machine;
  if (warnings === 0 || task === undefined) return;
  // The log is for the words; without it the warning is still one.
  const log = await job.hypervisor
    .taskLog(task, LOG_LINES, job.turn.reading)
    .catch((error: unknown) => {
      if (isLocalTrouble(error)) return [];
      throw error;
    });
  const words = log.filter((line) => /WARN|Could not/i.test(line)).join('; ');
  const { vmId, host } = job.vm;
  await job.tell({
    kind: 'saw',
    reason: 'DestroyedWithWarnings',
    message: `VM ${vmId} was destroyed on ${host} with ${warnings} warnings, see whether its disks are gone: ${words || task.upid}`,
    numbers: { vmId, warnings },
  });
}

/** A VM whose creation died keeps its lock; only root can take it away. Told, and looked at again. */
async function awaitDecision(job: Job, lock: string): Promise<Step> {
  const { vmId, host } = job.vm;
  const running = await job.hypervisor.runningTasks(host, `qm${lock}`, job.turn.reading);
  if (running.length === 0 && !(await isCloneUnderWay(job, job.pool))) {
    await job.turn.tellOnce(job.id, {
      kind: 'failed',
      subject: { pool: job.machine.pool, machine: job.id, host },
      reason: 'HalfMadeVm',
      message: `VM ${vmId} has the lock '${lock}' and no task of ours makes it; unless somebody else does, run 'qm unlock ${vmId}' and 'qm destroy ${vmId} --destroy-unreferenced-disks 1' on ${host}`,
    });
    const { pauses } = job.turn.memory;
    pauses.set(job.id, { until: job.turn.now + LOOK_AGAIN_MS, count: 0 });
  }
  return 'wait';
}

function tellLeftAlone(job: Job, reason: string): Promise<void> {
  return job.tell({
    kind: 'refused',
    reason: 'VmNotOurs',
    message: `VM ${job.vm.vmId} is left alone: ${reason}`,
    numbers: { vmId: job.vm.vmId },
  });
}

/** Nothing of the VM is left; or it is somebody else's now, and so is its Node. */
async function over(job: Job, { keepsNode } = { keepsNode: false }): Promise<Step> {
  await deleteSeed(job);
  if (!keepsNode && (await removeNode(job)) === 'wait') return 'wait';
  await job.turn.books.releaseAddresses(job.id);
  const { failure, deletionReason, placement } = job.machine;
  const name = placement?.name ?? job.id;
  await job.move(failure === undefined ? 'gone' : 'failed');
  await job.tell(
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

async function deleteSeed(job: Job): Promise<void> {
  const { placement, seedVolume } = job.machine;
  if (placement === undefined || seedVolume === undefined) return;
  await job.hypervisor.deleteVolume(seedHost(job), seedVolume, job.turn.acting);
  await job.update({ seedVolume: undefined });
}
