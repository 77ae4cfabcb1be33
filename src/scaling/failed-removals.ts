// SPDX-License-Identifier: Apache-2.0
// A removal has failed when pods that it moved need a new machine or find none, or have taken the place of pods that it had still to
// move: kube-scheduler has not placed them as predicted. The next one may fail in the same way, and so on, without an end. So the
// machines with pods of these workloads are kept for some time, which does not depend on a prediction.

import { formatAge } from '../model/format-text.ts';
import { type Pod, podKey } from '../model/pod.ts';
import type { FailedRemovals } from '../model/pool.ts';
import { isLeftOnNode } from './eviction-rules.ts';
import { isStaying } from './expected-nodes.ts';
import { isPlaceholder } from './headroom.ts';
import type { ScalingInput } from './input.ts';
import type { RecentRemoval, ScalingMemory } from './memory.ts';
import type { DrainStep, Refusal } from './plan.ts';
import type { Candidate, Refused } from './removal-candidate.ts';
import { podsOfMachine, type ScaleUp } from './scale-up.ts';

/** How long the pods may wait for the scheduler, and the removal for its begin. */
const OBSERVED_MS = 2 * 60_000;
/** So many may fail before the next one waits for long. */
const MAX_FAILURES = 3;
const MAX_WAIT_MS = 6 * 60 * 60_000;

interface DecisionParts {
  readonly up: ScaleUp;
  readonly steps: readonly DrainStep[];
  /** Of machines that are kept. */
  readonly refusals: readonly Refusal[];
}

/** What the next decision must know of removals that were decided before, and of those of this decision. */
export function followRemovals(
  input: ScalingInput,
  { up, steps, refusals }: DecisionParts,
): Pick<ScalingMemory, 'removals' | 'failedRemovals'> {
  const { memory, now } = input;
  const waiting = new Set(waitingPods(up).map(workloadOf));
  const failed = new Map(
    // After a long time without a failure, the next one is the first one again.
    Object.entries(memory.failedRemovals ?? {}).flatMap(([workload, { count, until }]) =>
      // The clock may have been set back since.
      now < until + MAX_WAIT_MS
        ? [[workload, { count, until: Math.min(until, now + MAX_WAIT_MS) }] as const]
        : [],
    ),
  );
  const failing = new Set<string>();
  const recent = (memory.removals ?? []).flatMap((removal) => {
    const workloads = Object.keys(removal.workloads);
    const isWaiting = workloads.some((workload) => waiting.has(workload));
    if (!isWaiting && !isUndone(removal, refusals, input)) return stillObserved(removal, input);
    // Pods of a workload that has grown need a new machine, or have taken the place of the one that waits.
    const pods = countPods(input, workloads);
    if (workloads.some((one) => (pods[one] ?? 0) > (removal.workloads[one] ?? 0)))
      return stillObserved(removal, input);
    // Each of its pods may have taken the place of the one that waits or is left.
    for (const workload of workloads) failing.add(workload);
    return [];
  });
  for (const workload of failing) failed.set(workload, failedAgain(failed.get(workload), input));
  return {
    removals: [...recent, ...steps.flatMap((step) => newRemoval(step, input))],
    failedRemovals: Object.fromEntries(failed),
  };
}

/** Why a machine is kept whose pods belong to a workload of which a removal has failed. */
export function failedRemovalRefusal(
  { node, pods }: Candidate,
  { memory: { failedRemovals = {} }, now }: ScalingInput,
): Refused | undefined {
  const failedOf = (pod: Pod) => failedRemovals[workloadOf(pod)];
  const pod = pods.find((one) => !isLeftOnNode(one) && (failedOf(one)?.until ?? now) > now);
  const failed = pod && failedOf(pod);
  if (pod === undefined || failed === undefined) return undefined;
  return {
    code: 'NodePodsWaitedBefore',
    reason: `node ${node.name} is kept for ${formatAge(failed.until - now)}: when a machine with pods like ${podKey(pod)} was drained, pods found no other node`,
    facts: { pod: podKey(pod), removals: failed.count, remainingMs: failed.until - now },
  };
}

/** When machines that are kept for that reason may be removed again. */
export function failedRemovalEnds({ memory, now }: ScalingInput): readonly number[] {
  return Object.values(memory.failedRemovals ?? {})
    .map(({ until }) => until)
    .filter((until) => until > now);
}

function waitingPods({ machines, unplaced }: ScaleUp): readonly Pod[] {
  return [...machines.flatMap(podsOfMachine), ...unplaced.map(({ pod }) => pod)].filter(
    (pod) => !isPlaceholder(pod),
  );
}

/** Whether it was given up after evictions, and pods that are left on the machine now find no other node. */
function isUndone(
  removal: RecentRemoval,
  refusals: readonly Refusal[],
  { machines, snapshot }: ScalingInput,
): boolean {
  const node = machines.find((one) => one.id === removal.machine && isStaying(one))?.node?.name;
  if (node === undefined) return false;
  const isNeeded = refusals.some(
    ({ code, subject }) => code === 'NodePodsFitNowhere' && subject.name === node,
  );
  if (!isNeeded) return false;
  const left = new Set(snapshot.podsOn(node).map(({ uid }) => uid));
  return removal.pods.some((uid) => !left.has(uid));
}

/** Until the machine is gone and all pods of the workloads run again. */
function stillObserved(removal: RecentRemoval, input: ScalingInput): readonly RecentRemoval[] {
  const { machines, pending, now } = input;
  const machine = machines.find(({ id }) => id === removal.machine);
  if (machine !== undefined && !isStaying(machine))
    return [{ ...removal, until: observedUntil(input) }];
  const isOver =
    machine === undefined && !pending.some((pod) => workloadOf(pod) in removal.workloads);
  return isOver || removal.until <= now ? [] : [removal];
}

function failedAgain(
  failed: FailedRemovals | undefined,
  { pools, now }: ScalingInput,
): FailedRemovals {
  const count = (failed?.count ?? 0) + 1;
  const unneededMs = Math.max(0, ...pools.map(({ config }) => config.scaleDown.unneededTimeMs));
  const waitMs = count < MAX_FAILURES ? Math.min(unneededMs, MAX_WAIT_MS) : MAX_WAIT_MS;
  return { count, until: now + waitMs };
}

function newRemoval({ machine, node }: DrainStep, input: ScalingInput): readonly RecentRemoval[] {
  const pendingBefore = new Set(input.pending.map(workloadOf));
  const moving = input.snapshot.podsOn(node).filter((pod) => !isLeftOnNode(pod));
  const workloads = moving.map(workloadOf).filter((one) => !pendingBefore.has(one));
  if (workloads.length === 0) return [];
  return [
    {
      machine,
      pods: moving.map(({ uid }) => uid),
      workloads: countPods(input, workloads),
      until: observedUntil(input),
    },
  ];
}

/** Pods get no new machine before they are old enough. */
function observedUntil({ now, settings }: ScalingInput): number {
  return now + OBSERVED_MS + settings.newPodDelayMs;
}

/** Without those that are being deleted. */
function countPods(
  { snapshot, pending }: ScalingInput,
  workloads: readonly string[],
): Readonly<Record<string, number>> {
  const counts = new Map(workloads.map((workload) => [workload, 0]));
  if (counts.size === 0) return {};
  for (const pods of [pending, ...snapshot.nodes.map(({ name }) => snapshot.podsOn(name))]) {
    for (const pod of pods) {
      const workload = workloadOf(pod);
      const count = counts.get(workload);
      if (count !== undefined && !isLeftOnNode(pod)) counts.set(workload, count + 1);
    }
  }
  return Object.fromEntries(counts);
}

/** Of a pod without a controller, the pod itself, which is created again with another uid. */
function workloadOf(pod: Pod): string {
  return pod.controller?.uid ?? podKey(pod);
}
