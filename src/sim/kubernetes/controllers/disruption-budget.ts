// SPDX-License-Identifier: Apache-2.0
// The status of PodDisruptionBudgets: how many more pods may be evicted now.
import { budgetFilter } from '../storage/eviction.ts';
import {
  isTerminating,
  type JsonObject,
  listField,
  numberField,
  objectField,
  type SimObject,
  specOf,
  statusOf,
  textField,
} from '../storage/objects.ts';
import { BUDGETS, DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS } from '../storage/resources.ts';
import {
  type Controller,
  type ControllerContext,
  isFinished,
  isReady,
  resolvePercentage,
  withCondition,
} from './controller.ts';

/** An eviction that has not deleted its pod after this time is forgotten. */
const DISRUPTED_POD_TIMEOUT_MS = 120_000;

export const disruptionController: Controller = {
  name: 'disruption-controller',
  watches: [BUDGETS, PODS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS],
  sync(cluster) {
    let next: number | undefined;
    cluster.forEach(cluster.list(BUDGETS), (budget) => {
      const disruptedPods = syncBudget(cluster, budget);
      const isWaiting = Object.keys(disruptedPods).length > 0;
      if (isWaiting) next = cluster.clock.monotonic() + DISRUPTED_POD_TIMEOUT_MS;
    });
    return next;
  },
};

function syncBudget(cluster: ControllerContext, budget: SimObject): JsonObject {
  const pods = cluster
    .list(PODS, budget.metadata.namespace ?? '')
    .filter(budgetFilter(budget))
    .filter((pod) => !isFinished(pod));
  const disruptedPods = keepDisrupted(cluster, budget, pods);
  const healthy = pods.filter(
    (pod) => isReady(pod) && !isTerminating(pod) && disruptedPods[pod.metadata.name] === undefined,
  ).length;
  const expected = expectedPods(cluster, budget, pods);
  if ('failure' in expected) {
    reportFailure(cluster, budget, expected.failure);
    return {};
  }
  const { count, desiredHealthy } = expected;
  const surplus = count > 0 ? Math.max(0, healthy - desiredHealthy) : 0;
  const condition = {
    type: 'DisruptionAllowed',
    isTrue: surplus > 0,
    reason: surplus > 0 ? 'SufficientPods' : 'InsufficientPods',
  };
  cluster.updateStatus(BUDGETS, budget, {
    observedGeneration: budget.metadata['generation'] ?? 1,
    disruptionsAllowed: surplus,
    currentHealthy: healthy,
    desiredHealthy,
    expectedPods: count,
    disruptedPods,
    conditions: withCondition(budget, condition, cluster.clock.now()),
  });
  return disruptedPods;
}

function keepDisrupted(
  cluster: ControllerContext,
  budget: SimObject,
  pods: readonly SimObject[],
): JsonObject {
  const now = cluster.clock.now();
  const pending = Object.entries(objectField(statusOf(budget), 'disruptedPods')).filter(
    ([name, time]) => {
      const pod = pods.find(({ metadata }) => metadata.name === name);
      const isOld = typeof time === 'string' && now - Date.parse(time) >= DISRUPTED_POD_TIMEOUT_MS;
      return pod !== undefined && !isTerminating(pod) && !isOld;
    },
  );
  return Object.fromEntries(pending);
}

interface ExpectedPods {
  readonly count: number;
  readonly desiredHealthy: number;
}

interface UnknownScale {
  readonly failure: string;
}

function expectedPods(
  cluster: ControllerContext,
  budget: SimObject,
  pods: readonly SimObject[],
): ExpectedPods | UnknownScale {
  const { maxUnavailable, minAvailable } = specOf(budget);
  if (maxUnavailable === undefined && typeof minAvailable === 'number') {
    return { count: pods.length, desiredHealthy: minAvailable };
  }
  const scale = sumScales(cluster, pods);
  if (typeof scale !== 'number') return scale;
  if (maxUnavailable !== undefined) {
    const allowed = resolvePercentage(maxUnavailable, scale, 'up');
    return { count: scale, desiredHealthy: Math.max(0, scale - allowed) };
  }
  return { count: scale, desiredHealthy: resolvePercentage(minAvailable ?? 0, scale, 'up') };
}

/** The replicas of all controllers of the pods, each counted once. Pods without a controller do not count. */
function sumScales(cluster: ControllerContext, pods: readonly SimObject[]): number | UnknownScale {
  const scales = new Map<string, number>();
  for (const pod of pods) {
    const { name, namespace = '' } = pod.metadata;
    const owner = controllerOf(pod);
    if (owner === undefined) continue;
    const root = findScalable(cluster, namespace, owner);
    if (root === undefined) return { failure: `found no controllers for pod "${name}"` };
    scales.set(root.metadata.uid, numberField(specOf(root), 'replicas', 1));
  }
  return [...scales.values()].reduce((sum, scale) => sum + scale, 0);
}

function controllerOf({ metadata }: SimObject): JsonObject | undefined {
  return listField(metadata, 'ownerReferences').find((one) => one['controller'] === true);
}

/** The controller whose replicas decide: that of a ReplicaSet, if it has one. Undefined for one without replicas. */
function findScalable(
  cluster: ControllerContext,
  namespace: string,
  owner: JsonObject,
): SimObject | undefined {
  const { resources } = cluster.storage;
  const resource = resources.findByKind(textField(owner, 'apiVersion'), textField(owner, 'kind'));
  if (resource === undefined || !resource.subresources.includes('scale')) return undefined;
  const found = cluster.find(resource, namespace, textField(owner, 'name'));
  const next = found && controllerOf(found);
  return next === undefined ? found : findScalable(cluster, namespace, next);
}

function reportFailure(cluster: ControllerContext, budget: SimObject, message: string): void {
  const condition = { type: 'DisruptionAllowed', isTrue: false, reason: 'SyncFailed', message };
  cluster.updateStatus(BUDGETS, budget, {
    observedGeneration: budget.metadata['generation'] ?? 1,
    disruptionsAllowed: 0,
    conditions: withCondition(budget, condition, cluster.clock.now()),
  });
}
