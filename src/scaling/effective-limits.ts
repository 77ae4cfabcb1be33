// SPDX-License-Identifier: Apache-2.0
// The limits of a pool now: those of the first open schedule window, otherwise those of the pool.

import type { PoolConfig } from '../config/types/index.ts';
import { openUntil } from './schedule-window.ts';

export interface EffectiveLimits {
  readonly min: number;
  readonly max: number;
  /** Name of the schedule; absent outside of all windows. */
  readonly schedule?: string;
  /** When the window ends. */
  readonly until?: number;
}

export function effectiveLimits(
  { limits, schedules }: Pick<PoolConfig, 'limits' | 'schedules'>,
  now: number,
): EffectiveLimits {
  for (const schedule of schedules) {
    const until = openUntil(schedule, now);
    if (until !== undefined) {
      const { min, max, name } = schedule;
      return { min: Math.min(min, max), max, schedule: name, until };
    }
  }
  const { min, max } = limits;
  return { min, max };
}
