// SPDX-License-Identifier: Apache-2.0
// A ready machine's Node: known, complete, and there. One that is only not ready is left alone. Machines that nobody
// told to join may have one too, by their image's own doing; whether it comes or goes is nothing to judge them by.

import type { Job, Step } from '../lifecycle/job.ts';
import { isLocalTrouble } from '../trouble.ts';
import { completeNode } from './complete.ts';
import { nodeOf } from './match.ts';
import { recordNode } from './record.ts';

export async function tendNode(job: Job): Promise<Step> {
  const { turn } = job;
  const { sight } = turn;
  if (sight.kind !== 'fresh' || job.pool === undefined) return 'wait';
  const node = nodeOf(job.machine, sight.view.nodes, turn.books.machines);
  if (node === undefined) return job.pool.joins ? missingNode(job) : 'wait';
  turn.memory.nodeMissingSince.delete(job.id);
  await recordNode(job, node);
  await completeNode(job, sight.cluster, node);
  return 'wait';
}

/** Only a Node that was there once can be missed; whether it is gone is asked again before it costs the machine. */
async function missingNode(job: Job): Promise<Step> {
  const { turn, machine } = job;
  if (machine.nodeName === undefined) return 'wait';
  const { nodeMissingSince, clusterStaleAt } = turn.memory;
  const since = Math.max(nodeMissingSince.get(job.id) ?? turn.now, clusterStaleAt);
  nodeMissingSince.set(job.id, since);
  if (turn.now - since < turn.settings.nodeLostAfterMs) return 'wait';
  if (!(await isReallyMissing(job))) return 'wait';
  const why = `its Node ${machine.nodeName} is gone`;
  await job.tell({ kind: 'saw', reason: 'MachineLost', message: `${job.placement.name}: ${why}` });
  nodeMissingSince.delete(job.id);
  return job.move('deleting', { deletionReason: why });
}

async function isReallyMissing(job: Job): Promise<boolean> {
  try {
    const view = await job.turn.cluster?.refresh(job.turn.reading);
    if (view === undefined) return false;
    return nodeOf(job.machine, view.nodes, job.turn.books.machines) === undefined;
  } catch (error) {
    if (isLocalTrouble(error)) return false;
    throw error;
  }
}
