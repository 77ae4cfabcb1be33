// SPDX-License-Identifier: Apache-2.0
// One decision: first the machines that pending pods need, then, if none is needed, the machines that are not.

import { formatAge } from '../model/format-text.ts';
import { podKey } from '../model/pod.ts';
import { judgeNewMachines, type PoolPauseRequest } from './breaker.ts';
import { cancelSteps, createSteps, minimumSteps, replaceSteps } from './create-steps.ts';
import { type Cause, describeUnplaced, nameOf } from './describe.ts';
import { isStaying } from './expected-nodes.ts';
import { failedRemovalEnds, followRemovals } from './failed-removals.ts';
import { isPlaceholder } from './headroom.ts';
import type { ScalingInput } from './input.ts';
import type { ScalingMemory } from './memory.ts';
import type { Decision, PendingPlacement, Refusal, Step } from './plan.ts';
import { hostKey, type PoolState, poolStates } from './pool-offers.ts';
import {
  countPods,
  endStalledReplacement,
  followReplacement,
  isReplacementDue,
  nextSearchAt,
} from './replacement.ts';
import { findReplacement } from './replacement-search.ts';
import { type ScaleDown, scaleDown } from './scale-down.ts';
import { podsOfMachine, type ScaleUp, scaleUp } from './scale-up.ts';
import { digestOf } from './snapshot-digest.ts';

export function decide(observed: ScalingInput): Decision {
  const verdict = judgeNewMachines(observed);
  const followed = { ...observed, memory: { ...observed.memory, ...followReplacement(observed) } };
  const input = withPauses(followed, verdict.pauses);
  const states = poolStates(input);
  const up = scaleUp(input, states);
  const added = [...createSteps(input, up.machines), ...minimumSteps(input, states, up)];
  const down = scaleDown(input, states, up);
  const refusals = [...scaleUpRefusals(input, states, up), ...down.refusals];
  const usual: readonly Step[] = [...added, ...cancelSteps(input, states, up), ...down.steps];
  const isSearched = usual.length === 0 && isReplacementDue(input, { states, up, down });
  const replacement = isSearched ? findReplacement(input, { states, up, down }) : undefined;
  const steps = replacement === undefined ? usual : replaceSteps(input, replacement);
  return {
    plan: {
      at: input.now,
      snapshotDigest: digestOf(input),
      steps,
      refusals,
      placements: placementsOf(up),
      counts: countsOf(input, up, down),
      nextAt: nextAt(input, { states, up, down, steps, refusals }),
    },
    memory: {
      ...nextMemory(input, down),
      ...followRemovals(input, { up, steps: down.steps, refusals: down.refusals }),
      trials: verdict.trials,
      streaks: verdict.streaks,
      ...(isSearched && {
        replacementAt: nextSearchAt(input),
        replacementSearches:
          replacement === undefined ? (input.memory.replacementSearches ?? 0) + 1 : 0,
      }),
      ...(replacement !== undefined && {
        replacementPods: countPods(input),
        replacementSize: replacement.replaced.length,
      }),
      ...endStalledReplacement(input, steps),
    },
    pauses: verdict.pauses,
  };
}

/** A pool that is paused by this decision does not grow by it. */
function withPauses(input: ScalingInput, pauses: readonly PoolPauseRequest[]): ScalingInput {
  if (pauses.length === 0) return input;
  const byPool = new Map(pauses.map((pause) => [pause.pool, pause]));
  return {
    ...input,
    pools: input.pools.map((pool) => {
      const pause = byPool.get(pool.config.name);
      if (pause === undefined || pool.pause !== undefined) return pool;
      return { ...pool, pause: { until: pause.until, message: pause.reason } };
    }),
  };
}

// Refusals

function scaleUpRefusals(
  input: ScalingInput,
  states: ReadonlyMap<string, PoolState>,
  up: ScaleUp,
): readonly Refusal[] {
  const causes = new Map<string, Refusal>();
  const pods = unplacedRefusals(states, up, (cause) => {
    causes.set(`${cause.subject.kind} ${cause.subject.name} ${cause.code} ${cause.reason}`, cause);
  });
  for (const { pool, exclusion } of states.values()) {
    if (exclusion === undefined || !pool.config.joins) continue;
    const { code, reason, facts } = exclusion;
    const subject = { kind: 'pool' as const, name: pool.config.name };
    causes.set(`pool ${subject.name} ${code} ${reason}`, { subject, code, reason, facts });
  }
  return [
    ...causes.values(),
    ...unreadRegions(input),
    ...unusableHosts(input),
    ...pods,
    ...waitingPods(input, up),
  ];
}

function unreadRegions({ unreadRegions: regions = {} }: ScalingInput): readonly Refusal[] {
  return Object.entries(regions).map(([region, why]) => ({
    subject: { kind: 'host', name: region },
    code: 'RegionUnread',
    reason: `region ${region} cannot be read, so it gets and loses no machine: ${why}`,
    facts: {},
  }));
}

function unplacedRefusals(
  states: ReadonlyMap<string, PoolState>,
  { unplaced }: ScaleUp,
  onCause: (cause: Cause) => void,
): readonly Refusal[] {
  // Pods with equal requirements share their reasons.
  const known = new Map<unknown, ReturnType<typeof describeUnplaced>>();
  return unplaced.map(({ pod, refusals }) => {
    const described = known.get(refusals) ?? describeUnplaced(refusals, states);
    if (!known.has(refusals)) for (const cause of described.causes) onCause(cause);
    known.set(refusals, described);
    const { code, reason, causes } = described;
    if (isPlaceholder(pod)) {
      const name = Object.values(pod.nodeSelector)[0] ?? '';
      return {
        subject: { kind: 'pool', name },
        code: 'PoolHeadroomUnmet',
        reason: `pool ${name} has less headroom than configured: ${reason}`,
        facts: {},
      };
    }
    const name = podKey(pod);
    const verb = code === 'PodFitsNoPool' ? 'fits no pool' : 'waits';
    const facts = { pools: refusals.length, limits: causes.length };
    return {
      subject: { kind: 'pod', name },
      code,
      reason: `pod ${name} ${verb}: ${reason}`,
      facts,
    };
  });
}

function unusableHosts({ hosts }: ScalingInput): readonly Refusal[] {
  return hosts.flatMap((host) =>
    Object.entries(host.pools).flatMap(([pool, { refusal }]) =>
      refusal === undefined
        ? []
        : [
            {
              subject: { kind: 'host' as const, name: hostKey(host) },
              code: 'HostUnusable' as const,
              reason: `pool ${pool} refused: ${refusal.message}`,
              facts: { pool, hostCode: refusal.code },
            },
          ],
    ),
  );
}

function waitingPods({ now, settings }: ScalingInput, up: ScaleUp): readonly Refusal[] {
  const tooNew = up.tooNew.map((pod): Refusal => {
    const ageMs = now - pod.createdAt;
    return {
      subject: { kind: 'pod', name: podKey(pod) },
      code: 'PodTooNew',
      reason: `pod ${podKey(pod)} has been pending for ${formatAge(ageMs)}, of ${formatAge(settings.newPodDelayMs)} (autoscaler.newPodDelay)`,
      facts: { ageMs, newPodDelayMs: settings.newPodDelayMs },
    };
  });
  const skipped = up.skipped.flatMap(({ pod, reason }): readonly Refusal[] => {
    const subject = { kind: 'pod' as const, name: podKey(pod) };
    if (reason === 'gated')
      return [
        {
          subject,
          code: 'PodGated',
          reason: `pod ${subject.name} has scheduling gates`,
          facts: {},
        },
      ];
    if (reason !== 'expendable') return [];
    const { priority } = pod;
    return [
      {
        subject,
        code: 'PodExpendable',
        reason: `pod ${subject.name} has priority ${priority}, below autoscaler.expendablePriority ${settings.expendablePriority}`,
        facts: { priority, expendablePriority: settings.expendablePriority },
      },
    ];
  });
  return [...tooNew, ...skipped];
}

// The rest of the plan

function placementsOf({ placements, expected }: ScaleUp): readonly PendingPlacement[] {
  const provisioning = new Set(expected.map(({ node }) => node.name));
  return placements
    .filter(({ pod }) => !isPlaceholder(pod))
    .map(({ pod, node, isNominated }): PendingPlacement => {
      const on = provisioning.has(node) ? 'provisioning' : 'node';
      return { pod: nameOf(pod), node, on: isNominated ? 'nominated' : on };
    });
}

function countsOf(input: ScalingInput, up: ScaleUp, down: ScaleDown): Decision['plan']['counts'] {
  const placements = placementsOf(up);
  const provisioning = placements.filter(({ on }) => on === 'provisioning').length;
  return {
    nodes: input.snapshot.nodes.length,
    pending: input.pending.length,
    fitExisting: placements.length - provisioning,
    fitProvisioning: provisioning,
    fitNew: up.machines.reduce((sum, machine) => sum + podsOfMachine(machine).length, 0),
    unplaced: up.unplaced.filter(({ pod }) => !isPlaceholder(pod)).length,
    unneeded: Object.keys(down.unneededSince).length,
  };
}

interface DecisionParts {
  readonly states: ReadonlyMap<string, PoolState>;
  readonly up: ScaleUp;
  readonly down: ScaleDown;
  readonly steps: readonly Step[];
  readonly refusals: readonly Refusal[];
}

const BATCH_INTERVAL_MS = 1_000;

function nextAt(input: ScalingInput, parts: DecisionParts): number | undefined {
  const { states, up, down, steps, refusals } = parts;
  // The next batch follows as soon as this one is requested.
  const isBatchFull = steps.length > 0 && refusals.some(({ code }) => code === 'PoolBatchFull');
  const times = [
    isBatchFull ? input.now + BATCH_INTERVAL_MS : undefined,
    down.nextAt,
    ...failedRemovalEnds(input),
    ...[...states.values()].flatMap(({ exclusion, limits }) => [exclusion?.until, limits.until]),
    ...up.tooNew.map(({ createdAt }) => createdAt + input.settings.newPodDelayMs),
  ].filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}

function nextMemory({ machines, memory, pending }: ScalingInput, down: ScaleDown): ScalingMemory {
  const present = new Set<string>(machines.filter(isStaying).map(({ id }) => id));
  const waiting = new Set(pending.map(({ uid }) => uid));
  const assignments = Object.entries(memory.assignments).flatMap(([id, uids]) => {
    const left = uids.filter((uid) => waiting.has(uid));
    return present.has(id) && left.length > 0 ? [[id, left] as const] : [];
  });
  return {
    unneededSince: down.unneededSince,
    assignments: Object.fromEntries(assignments),
    replacement: memory.replacement,
    replacementAt: memory.replacementAt,
    replacementFailures: memory.replacementFailures,
    replacementPods: memory.replacementPods,
    replacementSearches: memory.replacementSearches,
    replacementSize: memory.replacementSize,
  };
}
