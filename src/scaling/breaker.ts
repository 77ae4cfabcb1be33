// SPDX-License-Identifier: Apache-2.0
// The circuit breaker of a pool: after some machines in a row that never joined, or that none of the pods they were
// requested for was scheduled to, the pool is paused. Otherwise a wrong expectation of its nodes creates machines for
// ever.

import { formatAge, formatCount } from '../model/format-text.ts';
import type { Pod } from '../model/pod.ts';
import { checkFit } from '../scheduling/index.ts';
import { isLeftOnNode } from './eviction-rules.ts';
import { isReady } from './expected-nodes.ts';
import type { ScalingInput, ScalingMachine } from './input.ts';
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
  const { memory, machines, settings, now } = input;
  const trials = new Map(Object.entries(memory.trials ?? {}));
  const streaks = new Map(Object.entries(memory.streaks ?? {}));
  const pauses: PoolPauseRequest[] = [];
  const waiting = new Map(input.pending.map((pod) => [pod.uid, pod]));
  const known = new Set<string>(machines.map(({ id }) => id));
  for (const id of trials.keys()) if (!known.has(id)) trials.delete(id);
  for (const machine of machines.toSorted(compareMachines)) {
    const pods = trials.get(machine.id);
    if (pods === undefined) continue;
    const outcome = judge(
      machine,
      pods.flatMap((uid) => waiting.get(uid) ?? []),
      input,
    );
    if (outcome === 'undecided') continue;
    trials.delete(machine.id);
    if (outcome === 'neutral') continue;
    const streak = outcome === 'helped' ? [] : [...(streaks.get(machine.pool) ?? []), outcome];
    streaks.set(machine.pool, streak);
    if (streak.length < settings.guards.breaker.machines) continue;
    streaks.delete(machine.pool);
    if (pauses.some(({ pool }) => pool === machine.pool)) continue;
    const until = now + settings.guards.breaker.pauseMs;
    pauses.push({ pool: machine.pool, since: now, until, reason: describeStreak(streak, input) });
  }
  return {
    pauses,
    trials: Object.fromEntries(trials),
    streaks: Object.fromEntries([...streaks].filter(([, streak]) => streak.length > 0)),
  };
}

function compareMachines(left: ScalingMachine, right: ScalingMachine): number {
  return left.requestedAt - right.requestedAt || (left.id < right.id ? -1 : 1);
}

/** A text: why it did not help. */
type Outcome = 'undecided' | 'neutral' | 'helped' | `${string} ${string}`;

function judge(
  machine: ScalingMachine,
  waiting: readonly Pod[],
  { snapshot, now }: ScalingInput,
): Outcome {
  const { phase, node, readySince, isBeingDeleted, isDraining } = machine;
  if (phase === 'failed') return `${machine.placement?.name ?? machine.id} never joined`;
  if (isBeingDeleted || isDraining) return 'neutral';
  if (!isReady(machine) || node === undefined) return 'undecided';
  if (snapshot.podsOn(node.name).some((pod) => !isLeftOnNode(pod))) return 'helped';
  const readyMs = now - (readySince ?? node.createdAt);
  const isMisfit =
    readyMs >= MISFIT_MS &&
    node.isReady &&
    waiting.length > 0 &&
    waiting.every((pod) => !fitsOn(pod, node.name, snapshot));
  if (readyMs < SCHEDULING_MS && !isMisfit) return 'undecided';
  if (waiting.length === 0) return 'neutral';
  const pods = waiting.length === 1 ? 'its pod was not' : `none of its ${waiting.length} pods was`;
  return `${node.name} has been ready for ${formatAge(readyMs)}, and ${pods} scheduled to it`;
}

function fitsOn(pod: Pod, node: string, snapshot: ScalingInput['snapshot']): boolean {
  return snapshot.nodes.some(({ name }) => name === node) && checkFit(snapshot, pod, node).fits;
}

function describeStreak(streak: readonly string[], { settings }: ScalingInput): string {
  const { machines, pauseMs } = settings.guards.breaker;
  return `${formatCount(machines, 'machine')} in a row helped no pod, so it is paused for ${formatAge(pauseMs)}: ${streak.slice(-machines).join('; ')}`;
}
