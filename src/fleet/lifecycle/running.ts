// SPDX-License-Identifier: Apache-2.0
// starting → booting → ready, and what is looked after while a machine is ready. `joining` has its place between
// booting and ready once there is a cluster to join.

import { isSeedSeenTo, removeSeed, requireOurs } from './configuring.ts';
import type { Job, Step } from './job.ts';
import { look } from './look.ts';
import { mark } from './mark.ts';

export async function starting(job: Job): Promise<Step> {
  const task = await job.task();
  if (task.state === 'running') return 'wait';
  const { power } = await job.hypervisor.vmState(job.vm, job.turn.reading);
  if (power === 'running') return job.move('booting');
  if (task.state === 'ended' && task.failure !== undefined) {
    await job.update({ task: undefined });
    throw task.failure;
  }
  requireOurs(await look(job), job);
  return job.started(await job.hypervisor.startVm(job.vm, job.turn.acting));
}

export async function booting(job: Job): Promise<Step> {
  const task = await job.task();
  if (task.state === 'running') return 'wait';
  const answer = job.turn.memory.guests.answerTo({
    machine: job.machine,
    machines: job.turn.books.machines,
    now: job.turn.now,
    ask: () => job.hypervisor.guestIsUp(job.vm, job.turn.reading),
  });
  if (answer === 'up') return becomeReady(job);
  if (answer === 'unknown' || isSeenRunning(job)) return 'wait';
  const { power } = await job.hypervisor.vmState(job.vm, job.turn.reading);
  if (power === 'running') return 'wait';
  // A guest that powered itself off while installing is switched on again.
  requireOurs(await look(job), job);
  return job.started(await job.hypervisor.startVm(job.vm, job.turn.acting));
}

/** The overview is some seconds late, which here costs nothing but those seconds. */
function isSeenRunning({ placement, turn }: Job): boolean {
  return turn.seen(placement)?.power === 'running';
}

async function becomeReady(job: Job): Promise<Step> {
  await mark(job, requireOurs(await look(job), job), 'readySinceSeconds');
  await job.move('ready');
  await job.turn.books.changePool(job.machine.pool, ({ backoff, ...rest }) =>
    backoff === undefined ? undefined : rest,
  );
  const { name, host, vmId } = job.placement;
  await job.tell({
    kind: 'did',
    reason: 'MachineReady',
    message: `${name} is up: VM ${vmId} on host ${host}`,
    numbers: { vmId, seconds: Math.round((job.turn.now - job.machine.requestedAt) / 1_000) },
  });
  return 'again';
}

export async function ready(job: Job): Promise<Step> {
  if ((await isSeedSeenTo(job)) && isAsKnown(job)) return found(job);
  const sight = await look(job);
  switch (sight.kind) {
    case 'ours':
      await removeSeed(job, sight.config);
      return found(job);
    case 'undecided':
      return 'wait';
    case 'foreign':
      return missing(job, `its VM id is somebody else's: ${sight.reason}`);
    default:
      return missing(job, 'its VM is gone');
  }
}

/** As far as the overview tells: then nothing more is asked. */
function isAsKnown({ turn, placement }: Job): boolean {
  const { host, name } = placement;
  const seen = turn.seen(placement);
  return seen?.host === host && (seen.name ?? name) === name;
}

function found(job: Job): Step {
  job.turn.memory.missingSince.delete(job.id);
  return 'wait';
}

/** Not at once: a VM may be on its way between hosts. */
async function missing(job: Job, why: string): Promise<Step> {
  const { missingSince } = job.turn.memory;
  const since = missingSince.get(job.id) ?? job.turn.now;
  missingSince.set(job.id, since);
  if (job.turn.now - since < job.turn.settings.lostAfterMs) return 'wait';
  await job.tell({ kind: 'saw', reason: 'MachineLost', message: `${job.placement.name}: ${why}` });
  return job.move('deleting', { deletionReason: why });
}
