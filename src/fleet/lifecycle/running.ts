// SPDX-License-Identifier: Apache-2.0
// starting → booting → joining or ready, and what is looked after while a machine is ready.
import { myNode } from '../nodes/my-node.ts';
import { tendNode } from '../nodes/tend.ts';
import { becomeReady } from './become-ready.ts';
import { isSeedSeenTo, removeSeed, requireOurs } from './configuring.ts';
import type { Job, Step } from './job.ts';
import { look } from './look.ts';
import { isSeenRunning } from './seen-running.ts';

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
  const next = isToJoin(job) ? () => job.move('joining') : () => becomeReady(job);
  if (hasCome(job)) return next();
  const answer = job.turn.memory.guests.answerTo({
    machine: job.machine,
    machines: job.turn.books.census.inPhase('booting'),
    now: job.turn.now,
    ask: () => job.hypervisor.guestIsUp(job.vm, job.turn.reading),
  });
  if (answer === 'up') return next();
  if (answer === 'unknown' || isSeenRunning(job)) return 'wait';
  const { power } = await job.hypervisor.vmState(job.vm, job.turn.reading);
  if (power === 'running') return 'wait';
  // A guest that powered itself off while installing is switched on again.
  requireOurs(await look(job), job);
  return job.started(await job.hypervisor.startVm(job.vm, job.turn.acting));
}

/** Where nothing joins, or nobody can see it, a guest that is up is all there is to wait for. */
function isToJoin({ pool, turn }: Job): boolean {
  return pool?.joins === true && turn.cluster !== undefined;
}

/** By its Node, whatever its guest says: one that joins by itself need not have an agent. */
function hasCome(job: Job): boolean {
  const node = myNode(job);
  return node !== undefined && (isToJoin(job) || node.ready);
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

function found(job: Job): Promise<Step> {
  job.turn.memory.missingSince.delete(job.id);
  return tendNode(job);
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
