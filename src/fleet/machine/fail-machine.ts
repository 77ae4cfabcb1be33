// SPDX-License-Identifier: Apache-2.0
import type { PvescalerError } from '../../ports/errors.ts';
import { backOff } from '../capacity/backoff.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';

/**
 * Gives a machine up that never became ready. Where nothing was made it has failed at once; otherwise everything
 * that belongs to it is removed first. The reason is kept, and the pool waits before it makes another.
 */
export async function failMachine(
  reconcile: MachineReconcile,
  error: PvescalerError,
): Promise<void> {
  const { phase, pool, placement } = reconcile.machine;
  const { code, message } = error;
  const failure = { code, message, at: reconcile.context.now, phase };
  await backOff(reconcile.context, pool, { code, message });
  const changes = { failure, deletionReason: message };
  if (phase === 'requested' || phase === 'placed') {
    await reconcile.context.records.releaseAddresses(reconcile.id);
    await reconcile.move('failed', changes);
  } else {
    // A creation that still runs is waited for: what it makes must be found.
    const { task } = reconcile.machine;
    await reconcile.move('deleting', { ...changes, ...(task !== undefined && { task }) });
  }
  await reconcile.record({
    kind: 'failed',
    reason: code,
    message: `${placement?.name ?? reconcile.id}: ${message}`,
  });
}
