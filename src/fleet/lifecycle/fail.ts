// SPDX-License-Identifier: Apache-2.0
import type { PvescalerError } from '../../ports/errors.ts';
import { backOff } from '../capacity/backoff.ts';
import type { Job } from './job.ts';

/**
 * Gives a machine up that never became ready. Where nothing was made it has failed at once; otherwise everything
 * that belongs to it is removed first. The reason is kept, and the pool waits before it makes another.
 */
export async function fail(job: Job, error: PvescalerError): Promise<void> {
  const { phase, pool, placement } = job.machine;
  const { code, message } = error;
  const failure = { code, message, at: job.turn.now, phase };
  await backOff(job.turn, pool, { code, message });
  const changes = { failure, deletionReason: message };
  if (phase === 'requested' || phase === 'placed') {
    await job.turn.books.releaseAddresses(job.id);
    await job.move('failed', changes);
  } else {
    // A creation that still runs is waited for: what it makes must be found.
    const { task } = job.machine;
    await job.move('deleting', { ...changes, ...(task !== undefined && { task }) });
  }
  await job.tell({
    kind: 'failed',
    reason: code,
    message: `${placement?.name ?? job.id}: ${message}`,
  });
}
