// SPDX-License-Identifier: Apache-2.0
import type { Machine } from '../model/machine.ts';
import { backoffOf } from './capacity/backoff.ts';
import type { Turn } from './turn.ts';

/**
 * When the next round is worth its while. Soon while a machine moves; one that is paused after trouble is waited
 * for, one that waits for room only as long as everything is looked at anyway.
 */
export function nextRoundAt(turn: Turn, underWay: readonly Machine[]): number {
  const { reconcileMs, busyMs } = turn.settings;
  const latest = turn.now + reconcileMs;
  const soonest = turn.now + busyMs;
  const instants = underWay.map((machine) => instantOf(turn, machine) ?? latest);
  return Math.max(soonest, Math.min(latest, ...instants));
}

/** Undefined for a machine that waits for something that nobody announces. */
function instantOf(turn: Turn, { id, phase, pool }: Machine): number | undefined {
  if (phase === 'requested') return backoffOf(turn, pool)?.until;
  return turn.memory.pauses.get(id)?.until ?? 0;
}
