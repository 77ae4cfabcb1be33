// SPDX-License-Identifier: Apache-2.0
import type { Machine } from '../../model/machine.ts';
import { backoffOf } from '../capacity/backoff.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

/**
 * When the next round is worth its while. Soon while a machine moves; one that is paused after trouble is waited
 * for, one that waits for room only as long as everything is looked at anyway.
 */
export function nextPassAt(context: ReconcileContext, underWay: readonly Machine[]): number {
  const { reconcileMs, busyMs } = context.settings;
  const latest = context.now + reconcileMs;
  const soonest = context.now + busyMs;
  const instants = underWay.map((machine) => instantOf(context, machine) ?? latest);
  return Math.max(soonest, Math.min(latest, ...instants));
}

/** Undefined for a machine that waits for something that nobody announces. */
function instantOf(context: ReconcileContext, { id, phase, pool }: Machine): number | undefined {
  if (phase === 'requested') return backoffOf(context, pool)?.until;
  return context.state.backoffs.get(id)?.until ?? 0;
}
