// SPDX-License-Identifier: Apache-2.0
// What commands that delete machines request, and what they report of the drains.
import type { DrainSettings, FleetStatus } from '../fleet/index.ts';
import type { Drain } from '../model/drain.ts';
import { InvalidRequest, type PvescalerError, Undone } from '../ports/errors.ts';
import type { DrainOptions } from './drain-options.ts';
import { parseDurationMs } from './timeout-option.ts';

/** Undefined: without a drain. */
export function parseDrainOptions({
  drain,
  drainTimeout,
}: DrainOptions): DrainSettings | undefined {
  if (drainTimeout === undefined) return drain ? {} : undefined;
  const timeoutMs = parseDurationMs('--drain-timeout', drainTimeout);
  if (drain) return { timeoutMs };
  throw new InvalidRequest('USAGE', '--no-drain and --drain-timeout exclude each other');
}

/** Drains of these intents that were undone: their machines are kept. */
export function undoneDrains(
  { drains }: Pick<FleetStatus, 'drains'>,
  intents: ReadonlySet<string>,
): readonly Drain[] {
  return drains.filter(({ state, intent }) => state === 'undone' && intents.has(intent));
}

export function requireNoneUndone(drains: readonly Drain[]): void {
  if (drains.length > 0) throw undoneError(drains);
}

/** The code is that of a timeout if one of them timed out. */
function undoneError(drains: readonly Drain[]): PvescalerError {
  const hasTimedOut = drains.some(({ undo }) => undo?.cause === 'timed-out');
  const message = drains
    .map(({ nodeName, undo }) => `the drain of node ${nodeName} was undone: ${undo?.message}`)
    .join('; ');
  return new Undone(hasTimedOut ? 'DRAIN_TIMED_OUT' : 'DRAIN_UNDONE', message);
}
