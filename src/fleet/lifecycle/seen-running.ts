// SPDX-License-Identifier: Apache-2.0
import type { Job } from './job.ts';

/** The overview is some seconds late, which here costs nothing but those seconds. */
export function isSeenRunning({ placement, turn }: Job): boolean {
  return turn.seen(placement)?.power === 'running';
}
