// SPDX-License-Identifier: Apache-2.0
// Times in records that were written while the wall clock was ahead. They would delay what counts from them (a cool-down,
// a timeout, the removal of a record) until the clock reaches them; instead it counts from the correction of the clock.
import type { Machine } from '../../model/machine.ts';

/** Tolerated difference between the clocks of two processes. */
const MAX_CLOCK_SKEW_MS = 60_000;

/** The time itself, or `now` if it is in the future. */
export function correctedTime(at: number, now: number): number {
  return at > now + MAX_CLOCK_SKEW_MS ? now : at;
}

/** The same machine if none of its times is in the future. */
export function withCorrectedTimes(machine: Machine, now: number): Machine {
  const { phaseSince, requestedAt, placedAt = now, task, failure } = machine;
  const latest = Math.max(phaseSince, requestedAt, placedAt, task?.startedAt ?? 0);
  if (correctedTime(latest, now) === latest) return machine;
  return {
    ...machine,
    phaseSince: correctedTime(phaseSince, now),
    requestedAt: correctedTime(requestedAt, now),
    ...(machine.placedAt !== undefined && { placedAt: correctedTime(placedAt, now) }),
    ...(task !== undefined && {
      task: { ...task, startedAt: correctedTime(task.startedAt, now) },
    }),
    ...(failure !== undefined && { failure: { ...failure, at: correctedTime(failure.at, now) } }),
  };
}
