// SPDX-License-Identifier: Apache-2.0
import { requireOurs } from './configuring.ts';
import type { Job, Step } from './job.ts';
import { look } from './look.ts';
import { mark } from './mark.ts';

export async function becomeReady(job: Job): Promise<Step> {
  await mark(job, requireOurs(await look(job), job), 'readySinceSeconds');
  await job.move('ready');
  job.turn.memory.tokens.delete(job.id);
  await job.turn.books.changePool(job.machine.pool, ({ backoff, ...rest }) =>
    backoff === undefined ? undefined : rest,
  );
  const { name, host, vmId } = job.placement;
  const { nodeName } = job.machine;
  await job.tell({
    kind: 'did',
    reason: 'MachineReady',
    message: `${nodeName === undefined ? name : `node ${nodeName}`} is up: VM ${vmId} on host ${host}`,
    numbers: { vmId, seconds: Math.round((job.turn.now - job.machine.requestedAt) / 1_000) },
  });
  return 'again';
}
