// SPDX-License-Identifier: Apache-2.0
// Can fewer new machines replace several that cannot be removed one by one? Free capacity may be spread so that the pods of
// no single node fit elsewhere. The new machines are created first. Then the replaced ones are removed like any others,
// each after its own proof. Here: when one is searched, and what becomes of it.

import type { MachineId } from '../model/machine.ts';
import { isLeftOnNode } from './eviction-rules.ts';
import { findLeavingNodes, isStaying } from './expected-nodes.ts';
import { isPlaceholder } from './headroom.ts';
import type { ScalingInput } from './input.ts';
import type { ScalingMemory } from './memory.ts';
import type { Step } from './plan.ts';
import type { PoolState } from './pool-offers.ts';
import type { ScaleDown } from './scale-down.ts';
import type { ScaleUp } from './scale-up.ts';

/** The cluster as the other parts of the decision have left it. */
export interface Situation {
  readonly states: ReadonlyMap<string, PoolState>;
  readonly up: ScaleUp;
  readonly down: ScaleDown;
}

/** How long a replacement may make no progress at most, beside the delays of its pools. */
const MAX_STALLED_MS = 15 * 60_000;
/** So many may fail one after the other before the next one waits. */
const MAX_FAILURES = 3;
/** When the next one may be planned then, or after a new machine was lost. */
const AFTER_FAILURE_MS = 6 * 60 * 60_000;

/** What is left of the replacement in progress. */
export function followReplacement({ machines, memory, now }: ScalingInput): Partial<ScalingMemory> {
  const { replacement } = memory;
  if (replacement === undefined) return {};
  const present = new Set(machines.map(({ id }) => id));
  const staying = stayingIds(machines);
  const replaced = replacement.replaced.filter((id) => present.has(id));
  if (replaced.length === 0) return { replacement: undefined, replacementFailures: 0 };
  if (!replacement.added.every((id) => staying.has(id)))
    return { replacement: undefined, replacementAt: now + AFTER_FAILURE_MS };
  // The clock may have been set back since.
  const at = replaced.length < replacement.replaced.length ? now : Math.min(replacement.at, now);
  return { replacement: { ...replacement, at, replaced } };
}

/** Pods that are placed by the scheduler. */
export function countPods({ snapshot, pending }: ScalingInput): number {
  const running = snapshot.nodes.flatMap(({ name }) => snapshot.podsOn(name));
  return [...pending, ...running].filter((pod) => !isLeftOnNode(pod)).length;
}

/**
 * Ends one of which no machine can be removed, because pods were not scheduled as predicted. The next search takes them where they
 * are now. It has not failed if there are more pods than before: they have taken the place.
 */
export function endStalledReplacement(
  input: ScalingInput,
  steps: readonly Step[],
): Partial<ScalingMemory> {
  const { machines, memory, now, pools } = input;
  const {
    replacement,
    replacementFailures = 0,
    replacementPods = Infinity,
    replacementSize = 0,
  } = memory;
  if (replacement === undefined || steps.length > 0) return {};
  const staying = stayingIds(machines);
  const isRemoving = replacement.replaced.some((id) => !staying.has(id));
  const added = machines.filter(({ id }) => replacement.added.includes(id));
  // A machine that is being provisioned becomes ready or is lost.
  const since = Math.max(replacement.at, ...added.map(({ readySince }) => readySince ?? now));
  if (isRemoving || now - since < stalledMs(pools)) return {};
  if (countPods(input) > replacementPods) return { replacement: undefined };
  if (replacementSize - replacement.replaced.length > replacement.added.length)
    return { replacement: undefined, replacementFailures: 0 };
  const failures = replacementFailures + 1;
  return {
    replacement: undefined,
    replacementFailures: failures,
    ...(failures >= MAX_FAILURES && { replacementAt: now + AFTER_FAILURE_MS }),
  };
}

function stayingIds(machines: ScalingInput['machines']): ReadonlySet<MachineId> {
  return new Set(machines.filter(isStaying).map(({ id }) => id));
}

function stalledMs(pools: ScalingInput['pools']): number {
  const settings = pools.map(({ config }) => config.scaleDown);
  const delays = settings.flatMap((one) => [one.delayAfterAddMs, one.delayAfterDeleteMs]);
  const unneededMs = Math.max(0, ...settings.map(({ unneededTimeMs }) => unneededTimeMs));
  return Math.min(MAX_STALLED_MS, unneededMs) + Math.max(0, ...delays);
}

/** Whether nothing else is in progress, and the last search is long enough ago. */
export function isReplacementDue(input: ScalingInput, { states, up, down }: Situation): boolean {
  const { now, memory, pending } = input;
  if (memory.replacement !== undefined || (memory.replacementAt ?? now) > now) return false;
  if (up.machines.length > 0 || up.expected.length > 0) return false;
  // kube-scheduler does not know headroom: evicted pods would take its place, and that would need a new machine.
  if (up.placements.some(({ pod }) => isPlaceholder(pod))) return false;
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
