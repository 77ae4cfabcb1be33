// SPDX-License-Identifier: Apache-2.0
import type { PvescalerError, TimedOut } from '../../ports/errors.ts';
import { backOff } from '../capacity/backoff.ts';
import { isMachineError } from '../context/machine-error.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import { lookUpVm } from './own-vm.ts';

/**
 * Ends a machine that never became ready. If nothing exists on a host it is failed at once; otherwise everything that
 * belongs to it is removed first. The reason is kept, and the pool backs off before it creates another machine.
 */
export async function failMachine(
  reconcile: MachineReconcile,
  error: PvescalerError,
): Promise<void> {
  const { phase, pool, placement } = reconcile.machine;
  const { code, message } = error;
  const failure = { code, message, at: reconcile.context.now, phase };
  // Nothing but a person creates another VM by hand. A test says something about the pool, but its members need not wait
  // for it.
  if (reconcile.role === undefined && reconcile.machine.isSelftest !== true) {
    await backOff(reconcile.context, pool, { code, message });
  }
  const changes = { failure, deletionReason: message };
  if (phase === 'requested' || phase === 'placed') {
    await reconcile.move('failed', changes);
  } else {
    // A creation that still runs is followed to its end: the VM it creates must be found.
    const { task } = reconcile.machine;
    await reconcile.move('deleting', { ...changes, ...(task !== undefined && { task }) });
  }
  await reconcile.record({
    kind: 'failed',
    reason: code,
    message: `${placement?.name ?? reconcile.id}: ${message}`,
    numbers: { phase },
  });
}

/** A VM that is marked as ready corrects the record instead. One that cannot be read is checked before it is destroyed. */
export async function failOverdue(reconcile: MachineReconcile, error: TimedOut): Promise<void> {
  await lookUpVm(reconcile).catch((thrown: unknown) => {
    if (!isMachineError(thrown)) throw thrown;
  });
  await failMachine(reconcile, error);
}

/** Adds the last error of the machine, which is often why a timeout was reached. */
export function withLastError({ context, id }: MachineReconcile, message: string): string {
  const last = context.state.recorded.get(id);
  return last === undefined ? message : `${message}; the last error was ${last}`;
}
