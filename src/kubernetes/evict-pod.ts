// SPDX-License-Identifier: Apache-2.0
import type { ClusterCallOptions, EvictionOutcome, PodRef } from '../ports/cluster.ts';
import { type ApiClient, apiPath } from './api-client.ts';
import type { ApiObject } from './objects.ts';
import { type ApiStatus, translateStatus } from './status.ts';

/** Evicts through the Eviction API, so that PodDisruptionBudgets apply. */
export async function evictPod(
  api: ApiClient,
  pod: PodRef,
  { signal }: ClusterCallOptions = {},
): Promise<EvictionOutcome> {
  const operation = `evict pod ${pod.namespace}/${pod.name}`;
  const result = await api.request({
    method: 'POST',
    path: `${podPath(pod)}/eviction`,
    body: {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: pod.name, namespace: pod.namespace },
      deleteOptions: { preconditions: { uid: pod.uid } },
    },
    operation,
    signal,
  });
  if (result.ok) return { outcome: 'evicted' };
  const reason = readBudgetReason(result.status);
  if (reason !== undefined) return { outcome: 'blocked', reason };
  if (result.status.code === 404) return { outcome: 'already-gone' };
  if (result.status.code === 409 && !(await podExists(api, pod, signal))) {
    return { outcome: 'already-gone' };
  }
  throw translateStatus(result.status, operation);
}

/** An overloaded API server also returns 429; only this cause identifies a budget. */
function readBudgetReason({ code, message, causes }: ApiStatus): string | undefined {
  const budget = causes.find(({ reason }) => reason === 'DisruptionBudget');
  if (code === 429 && budget !== undefined) return describeBudget(budget.message || message);
  // Two budgets select one pod: the API server returns an error, and eviction stays blocked.
  return code === 500 && message.includes('PodDisruptionBudget') ? message : undefined;
}

/** `The disruption budget web needs 1 healthy pods and has 1 currently`, as the API server writes it. */
function describeBudget(message: string): string {
  const [, name, rest] = /^The disruption budget (\S+) (needs .*)$/.exec(message) ?? [];
  return name === undefined
    ? message
    : `PodDisruptionBudget ${name} allows no disruption: it ${rest}`;
}

async function podExists(
  api: ApiClient,
  pod: PodRef,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const operation = `read pod ${pod.namespace}/${pod.name}`;
  const result = await api.request<ApiObject>({ path: podPath(pod), operation, signal });
  if (result.ok) return result.value.metadata.uid === pod.uid;
  if (result.status.code === 404) return false;
  throw translateStatus(result.status, operation);
}

function podPath({ namespace, name }: PodRef): string {
  return apiPath('api', 'v1', 'namespaces', namespace, 'pods', name);
}
