// SPDX-License-Identifier: Apache-2.0
import type { Machine } from '../../model/machine.ts';
import { forEachConcurrent } from '../context/for-each-concurrent.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { reconcileMachine } from '../machine/reconcile-machine.ts';

const MIN_CONCURRENT = 8;
const MAX_CONCURRENT = 32;
/** Of the few requests that a host answers at the same time, some are left to others. */
const PER_HOST = 2;

/** Takes all of them as far as they go now, several side by side: one whose host is slow holds up few others. */
export async function reconcileMachines(
  context: ReconcileContext,
  machines: readonly Machine[],
): Promise<void> {
  await forEachConcurrent(machines, limitOf(context), async ({ id }) => {
    await reconcileMachine(context, id);
    await context.yieldToEventLoop();
  });
}

function limitOf({ views }: ReconcileContext): number {
  const hosts = [...views.values()].reduce((sum, view) => sum + view.hosts.length, 0);
  return Math.min(Math.max(MIN_CONCURRENT, PER_HOST * hosts), MAX_CONCURRENT);
}
