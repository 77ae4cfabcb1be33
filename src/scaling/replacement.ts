// SPDX-License-Identifier: Apache-2.0
// Can fewer new machines replace several that cannot be removed one by one? Free capacity may be spread so that the pods of
// no single node fit elsewhere. The new machines are created first. Then the replaced ones are removed like any others,
// each after its own proof. Here: when one is searched, and what becomes of it.

import { findLeavingNodes, isStaying } from './expected-nodes.ts';
import { isPlaceholder } from './headroom.ts';
import type { ScalingInput } from './input.ts';
import type { ScalingMemory } from './memory.ts';
import type { PoolState } from './pool-offers.ts';
import type { ScaleDown } from './scale-down.ts';
import type { ScaleUp } from './scale-up.ts';

/** The cluster as the other parts of the decision have left it. */
export interface Situation {
  readonly states: ReadonlyMap<string, PoolState>;
  readonly up: ScaleUp;
  readonly down: ScaleDown;
}

/** How long no machine may have been removed until a replacement has failed, beside the delay after an added machine. */
const STALLED_MS = 15 * 60_000;
/** When the next one may be planned after one that failed. */
const AFTER_FAILURE_MS = 6 * 60 * 60_000;

/** What is left of the replacement in progress. */
export function followReplacement(input: ScalingInput): Partial<ScalingMemory> {
  const { machines, memory, now, pools } = input;
  const { replacement } = memory;
  if (replacement === undefined) return {};
  const delayMs = Math.max(0, ...pools.map(({ config }) => config.scaleDown.delayAfterAddMs));
  const present = new Set(machines.map(({ id }) => id));
  const staying = new Set(machines.filter(isStaying).map(({ id }) => id));
  const replaced = replacement.replaced.filter((id) => present.has(id));
  if (replaced.length === 0) return { replacement: undefined };
  const at = replaced.length < replacement.replaced.length ? now : replacement.at;
  const isRemoving = replaced.some((id) => !staying.has(id));
  const isStalled = !isRemoving && now - at >= STALLED_MS + delayMs;
  const hasFailed = isStalled || !replacement.added.every((id) => staying.has(id));
  if (hasFailed) return { replacement: undefined, replacementAt: now + AFTER_FAILURE_MS };
  return { replacement: { ...replacement, at, replaced } };
}

/** Whether nothing else is in progress, and the last search is long enough ago. */
export function isReplacementDue(input: ScalingInput, { states, up, down }: Situation): boolean {
  const { now, memory, pending } = input;
  if (memory.replacement !== undefined || (memory.replacementAt ?? now) > now) return false;
  if (up.machines.length > 0 || up.expected.length > 0) return false;
  const unplaced = up.unplaced.filter(({ pod }) => !isPlaceholder(pod));
  if (pending.length > unplaced.length + up.skipped.length) return false;
  // A pod that waits for a pool which may grow again soon.
  const isAwaited = ({ pool, reasons }: (typeof unplaced)[number]['refusals'][number]) =>
    reasons.length === 0 && states.get(pool)?.exclusion !== undefined;
  if (unplaced.some(({ refusals }) => refusals.some(isAwaited))) return false;
  if (findLeavingNodes(input).length > 0 || down.nextAt !== undefined) return false;
  return !down.refusals.some(({ code }) => code === 'TooManyUnready');
}

/** A search packs many pods, so that it is not repeated with every decision. */
export function nextSearchAt({ pools, now }: ScalingInput): number {
  return now + Math.max(0, ...pools.map(({ config }) => config.scaleDown.unneededTimeMs));
}
