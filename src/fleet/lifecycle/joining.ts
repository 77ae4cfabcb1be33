// SPDX-License-Identifier: Apache-2.0
// joining → ready: the guest is up, its Node appears, gets what its kubelet could not say, and is Ready.
import { TimedOut } from '../../ports/errors.ts';
import { joinByAgent } from '../nodes/agent-join.ts';
import { completeNode, tellDifferences } from '../nodes/complete.ts';
import { learnAllocatable } from '../nodes/learn.ts';
import { myNode } from '../nodes/my-node.ts';
import { recordNode } from '../nodes/record.ts';
import { becomeReady } from './become-ready.ts';
import { requireOurs } from './configuring.ts';
import { fail } from './fail.ts';
import type { Job, Step } from './job.ts';
import { look } from './look.ts';
import { isSeenRunning } from './seen-running.ts';

export async function joining(job: Job): Promise<Step> {
  const { sight } = job.turn;
  if (sight.kind === 'none') return becomeReady(job);
  const task = await job.task();
  if (task.state === 'running' || sight.kind === 'stale') return 'wait';
  const node = myNode(job);
  if (node === undefined) return awaitNode(job);
  await recordNode(job, node);
  if (await completeNode(job, sight.cluster, node)) return 'wait';
  if (!node.ready || node.isTerminating) return keepRunning(job);
  await tellDifferences(job, node);
  await learnAllocatable(job.turn, job.machine, node);
  return becomeReady(job);
}

async function awaitNode(job: Job): Promise<Step> {
  const timeoutMs = job.pool?.registrationTimeoutMs ?? Number.POSITIVE_INFINITY;
  // While the cluster could not be read nobody could register either.
  const since = Math.max(job.machine.phaseSince, job.turn.memory.clusterStaleAt);
  if (job.turn.now - since > timeoutMs) {
    const seconds = Math.round(timeoutMs / 1_000);
    const message = `its guest is up, but no Node of it appeared within ${seconds} s`;
    await fail(job, new TimedOut('REGISTRATION_TIMED_OUT', message));
    return 'wait';
  }
  const step = await keepRunning(job);
  await joinByAgent(job);
  return step;
}

/** A guest that powered itself off on the way is switched on again. */
async function keepRunning(job: Job): Promise<Step> {
  if (isSeenRunning(job)) return 'wait';
  requireOurs(await look(job), job);
  const { power } = await job.hypervisor.vmState(job.vm, job.turn.reading);
  if (power === 'running') return 'wait';
  return job.started(await job.hypervisor.startVm(job.vm, job.turn.acting));
}
