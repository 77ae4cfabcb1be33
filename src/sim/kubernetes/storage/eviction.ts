// SPDX-License-Identifier: Apache-2.0
// The eviction subresource: the checks and texts of a real API server (pkg/registry/core/pod/storage/eviction.go).
import { ApiError, conflictError } from './api-error.ts';
import type { ObjectAddress } from './object-store.ts';
import {
  conditionOf,
  formatTime,
  isTerminating,
  type JsonObject,
  listField,
  numberField,
  objectField,
  type SimObject,
  specOf,
  statusOf,
  textField,
} from './objects.ts';
import type { ResourceStorage } from './resource-storage.ts';
import { BUDGETS, PODS } from './resources.ts';
import { selectorFilter } from './selectors.ts';

const VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget.";
const TWO_BUDGETS =
  'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
const MAX_DISRUPTED_PODS = 2_000;
const MANAGER = 'kube-apiserver';

export interface EvictionOptions {
  readonly body: JsonObject;
  readonly isDryRun: boolean;
  readonly now: number;
}

/** Throws 429 when a disruption budget forbids the eviction. */
export function evictPod(
  storage: ResourceStorage,
  address: ObjectAddress,
  options: EvictionOptions,
): void {
  const { body, isDryRun, now } = options;
  const { name: evicted = address.name } = objectField(body, 'metadata');
  if (evicted !== address.name) {
    throw new ApiError(400, 'BadRequest', 'name in URL does not match name in Eviction object');
  }
  const pod = storage.store.get(address);
  if (!isBudgetIgnored(pod)) takeFromBudget(storage, pod, { isDryRun, now });
  if (isDryRun) return;
  const deleteOptions = objectField(body, 'deleteOptions');
  checkUid(pod, deleteOptions);
  storage.patchStatus(address, {
    kind: 'strategic',
    manager: MANAGER,
    body: { status: { conditions: [disruptionTarget(now)] } },
  });
  storage.delete(address, deleteOptions);
}

function isBudgetIgnored(pod: SimObject): boolean {
  const phase = textField(statusOf(pod), 'phase');
  return ['Succeeded', 'Failed', 'Pending'].includes(phase) || isTerminating(pod);
}

function checkUid(pod: SimObject, deleteOptions: JsonObject): void {
  const uid = textField(objectField(deleteOptions, 'preconditions'), 'uid');
  if (uid === '' || uid === pod.metadata.uid) return;
  throw conflictError(
    'Pod',
    pod.metadata.name,
    `the UID in the precondition (${uid}) does not match the UID in record (${pod.metadata.uid}). The object might have been deleted and then recreated`,
  );
}

function disruptionTarget(now: number): JsonObject {
  return {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
    lastTransitionTime: formatTime(now),
  };
}

function takeFromBudget(
  storage: ResourceStorage,
  pod: SimObject,
  { isDryRun, now }: { readonly isDryRun: boolean; readonly now: number },
): void {
  const budgets = findBudgets(storage, pod);
  if (budgets.length > 1) throw new ApiError(500, '', TWO_BUDGETS);
  const [budget] = budgets;
  if (budget === undefined || isUnhealthyPodAllowed(budget, pod)) return;
  checkBudget(budget);
  if (isDryRun) return;
  const status = statusOf(budget);
  const allowed = numberField(status, 'disruptionsAllowed') - 1;
  const disruptedPods = {
    ...objectField(status, 'disruptedPods'),
    [pod.metadata.name]: formatTime(now),
  };
  storage.replaceStatus(
    { resource: BUDGETS, namespace: pod.metadata.namespace ?? '', name: budget.metadata.name },
    { ...budget, status: { ...status, disruptionsAllowed: allowed, disruptedPods } },
    MANAGER,
  );
}

export function findBudgets(storage: ResourceStorage, pod: SimObject): readonly SimObject[] {
  return storage.store
    .list(BUDGETS, pod.metadata.namespace ?? '')
    .filter((budget) => budgetFilter(budget)(pod));
}

/** Selects the pods of a budget in its namespace. */
export function budgetFilter(budget: SimObject): (pod: SimObject) => boolean {
  const { selector } = specOf(budget);
  if (selector === undefined || selector === null) return () => false;
  const filter = selectorFilter(objectField({ selector }, 'selector'));
  return (pod) => pod.metadata.namespace === budget.metadata.namespace && filter(pod);
}

export function isPodReady(pod: SimObject): boolean {
  return conditionOf(pod, 'Ready')?.['status'] === 'True';
}

/** An unhealthy pod does not count as a disruption while enough other pods are healthy. */
function isUnhealthyPodAllowed(budget: SimObject, pod: SimObject): boolean {
  if (isPodReady(pod)) return false;
  if (specOf(budget)['unhealthyPodEvictionPolicy'] === 'AlwaysAllow') return true;
  const { healthy, desired } = countHealthy(budget);
  return healthy >= desired && desired > 0;
}

function countHealthy(budget: SimObject): { readonly healthy: number; readonly desired: number } {
  const status = statusOf(budget);
  return {
    healthy: numberField(status, 'currentHealthy'),
    desired: numberField(status, 'desiredHealthy'),
  };
}

function checkBudget(budget: SimObject): void {
  const { name } = budget.metadata;
  const status = statusOf(budget);
  if (numberField(status, 'observedGeneration') < numberField(budget.metadata, 'generation')) {
    throw violationError(`The disruption budget ${name} is still being processed by the server.`);
  }
  const allowed = numberField(status, 'disruptionsAllowed');
  if (allowed < 0) throw forbiddenError(name, 'pdb disruptions allowed is negative');
  if (Object.keys(objectField(status, 'disruptedPods')).length > MAX_DISRUPTED_PODS) {
    const reason = 'DisruptedPods map too big - too many evictions not confirmed by PDB controller';
    throw forbiddenError(name, reason);
  }
  if (allowed === 0) throw violationError(describeExhausted(budget));
}

function describeExhausted(budget: SimObject): string {
  const { name } = budget.metadata;
  const { healthy, desired } = countHealthy(budget);
  const [condition] = listField(statusOf(budget), 'conditions').filter(
    (one) => one['type'] === 'DisruptionAllowed' && one['status'] === 'False',
  );
  const message = textField(condition ?? {}, 'message');
  const reason = textField(condition ?? {}, 'reason');
  if (message !== '' && reason === 'SyncFailed') {
    return `The disruption budget ${name} does not allow evicting pods currently because it failed sync: ${message}`;
  }
  if (healthy <= desired) {
    return `The disruption budget ${name} needs ${desired} healthy pods and has ${healthy} currently`;
  }
  const base = `The disruption budget ${name} does not allow evicting pods currently`;
  return message === '' ? base : `${base} (${reason}): ${message}`;
}

function violationError(message: string): ApiError {
  return new ApiError(429, 'TooManyRequests', VIOLATION, [{ reason: 'DisruptionBudget', message }]);
}

function forbiddenError(name: string, reason: string): ApiError {
  const subject = `poddisruptionbudget.policy "${name}"`;
  return new ApiError(403, 'Forbidden', `${subject} is forbidden: ${reason}`);
}

/** Binds a pod to a node: `POST …/pods/NAME/binding`. */
export function bindPod(
  storage: ResourceStorage,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  { nodeName, now }: { readonly nodeName: string; readonly now: number },
): void {
  const address = { resource: PODS, namespace, name };
  const pod = storage.store.get(address);
  const assigned = textField(specOf(pod), 'nodeName');
  const reject = (reason: string) => conflictError('pods/binding', name, reason);
  if (isTerminating(pod)) {
    throw reject(`pod ${name} is being deleted, cannot be assigned to a host`);
  }
  if (assigned !== '') throw reject(`pod ${name} is already assigned to node "${assigned}"`);
  if (listField(specOf(pod), 'schedulingGates').length > 0) {
    throw reject(`pod ${name} has non-empty .spec.schedulingGates`);
  }
  const condition = { type: 'PodScheduled', status: 'True', lastTransitionTime: formatTime(now) };
  storage.patchWithStatus(address, {
    kind: 'strategic',
    manager: 'kube-scheduler',
    body: { spec: { nodeName }, status: { conditions: [condition] } },
  });
}
