// SPDX-License-Identifier: Apache-2.0
// The circuit breaker of a pool: after some machines in a row that never joined, or that none of the pods they were
// requested for was scheduled to, the pool is paused. Otherwise a wrong expectation of its nodes creates machines for
// ever.

import { formatAge, formatCount } from '../model/format-text.ts';
import type { Pod } from '../model/pod.ts';
import { checkFit } from '../scheduling/index.ts';
import { isLeftOnNode } from './eviction-rules.ts';
import { isReady } from './expected-nodes.ts';
import type { ScalingInput, ScalingMachine, ScalingNode } from './input.ts';
import type { ScalingMemory } from './memory.ts';

export interface PoolPauseRequest {
  readonly pool: string;
  readonly since: number;
  readonly until: number;
  readonly reason: string;
}

export interface BreakerVerdict {
  /** Pools to pause from now on. The caller stores them. */
  readonly pauses: readonly PoolPauseRequest[];
  readonly trials: NonNullable<ScalingMemory['trials']>;
  readonly streaks: NonNullable<ScalingMemory['streaks']>;
}

/** How long pods may take to be scheduled to a ready machine. */
const SCHEDULING_MS = 120_000;
/** The same when they do not fit on it as it is. */
const MISFIT_MS = 30_000;

/** Judges the machines that were requested and not judged yet. */
export function judgeNewMachines(input: ScalingInput): BreakerVerdict {
  const { memory, machines } = input;
  const known = new Set<string>(machines.map(({ id }) => id));
  const trials = new Map(Object.entries(memory.trials ?? {}).filter(([id]) => known.has(id)));
  const streaks = new Map(Object.entries(memory.streaks ?? {}));
  const pauses = new Map<string, PoolPauseRequest>();
  const waiting = new Map(input.pending.map((pod) => [pod.uid, pod]));
  for (const machine of machines.toSorted(compareMachines)) {
    const uids = trials.get(machine.id);
    if (uids === undefined) continue;
    const pods = uids.flatMap((uid) => waiting.get(uid) ?? []);
    const outcome = judge(machine, pods, input);
    if (outcome === 'undecided') continue;
    trials.delete(machine.id);
    const { pool } = machine;
    const streak = nextStreak(streaks.get(pool) ?? [], outcome);
    const isOver = streak.length >= input.settings.guards.breaker.machines;
    streaks.set(pool, isOver ? [] : streak);
    if (isOver && !pauses.has(pool)) pauses.set(pool, pauseOf(pool, streak, input));
  }
  return {
    pauses: [...pauses.values()],
    trials: Object.fromEntries(trials),
    streaks: Object.fromEntries([...streaks].filter(([, streak]) => streak.length > 0)),
  };
}

function nextStreak(streak: readonly string[], outcome: Outcome): readonly string[] {
  if (outcome === 'neutral') return streak;
  return outcome === 'helped' ? [] : [...streak, outcome];
}

function pauseOf(pool: string, streak: readonly string[], input: ScalingInput): PoolPauseRequest {
  const { now, settings } = input;
  const until = now + settings.guards.breaker.pauseMs;
  return { pool, since: now, until, reason: describeStreak(streak, input) };
}

function compareMachines(left: ScalingMachine, right: ScalingMachine): number {
  return left.requestedAt - right.requestedAt || (left.id < right.id ? -1 : 1);
}

/** A text: why it did not help. */
type Outcome = 'undecided' | 'neutral' | 'helped' | `${string} ${string}`;

function judge(machine: ScalingMachine, waiting: readonly Pod[], input: ScalingInput): Outcome {
  const { phase, node, isBeingDeleted, isDraining, hasFailed } = machine;
  // Its deletion may take longer than the time between two decisions.
  if (phase === 'failed' || phase === 'kept' || (phase === 'deleting' && hasFailed === true))
    return `${machine.placement?.name ?? machine.id} never joined`;
  if (isBeingDeleted || isDraining) return 'neutral';
  if (!isReady(machine) || node === undefined) return 'undecided';
  return judgeReady({ ...machine, node }, waiting, input);
}

function judgeReady(
  { node, readySince }: ScalingMachine & { readonly node: ScalingNode },
  waiting: readonly Pod[],
  { snapshot, now }: ScalingInput,
): Outcome {
  if (snapshot.podsOn(node.name).some((pod) => !isLeftOnNode(pod))) return 'helped';
  const readyMs = now - (readySince ?? node.createdAt);
  const patienceMs = isMisfit(node, waiting, snapshot) ? MISFIT_MS : SCHEDULING_MS;
  if (readyMs < patienceMs) return 'undecided';
  if (waiting.length === 0) return 'neutral';
  const pods = waiting.length === 1 ? 'its pod was not' : `none of its ${waiting.length} pods was`;
  return `${node.name} has been ready for ${formatAge(readyMs)}, and ${pods} scheduled to it`;
}

/** Whether it is Ready, and none of the pods fits on it. */
function isMisfit(
  { name, isReady: isNodeReady }: ScalingNode,
  waiting: readonly Pod[],
  snapshot: ScalingInput['snapshot'],
): boolean {
  return isNodeReady && waiting.length > 0 && !waiting.some((pod) => fitsOn(pod, name, snapshot));
}

function fitsOn(pod: Pod, node: string, snapshot: ScalingInput['snapshot']): boolean {
  return snapshot.nodes.some(({ name }) => name === node) && checkFit(snapshot, pod, node).fits;
}

function describeStreak(streak: readonly string[], { settings }: ScalingInput): string {
  const { machines, pauseMs } = settings.guards.breaker;
  return `${formatCount(machines, 'machine')} in a row helped no pod, so it is paused for ${formatAge(pauseMs)}: ${streak.slice(-machines).join('; ')}`;
}
