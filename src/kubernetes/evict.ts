// SPDX-License-Identifier: Apache-2.0
import type { ClusterCallOptions, EvictionOutcome, PodRef } from '../ports/cluster.ts';
import { type Api, pathOf } from './api.ts';
import type { ApiObject } from './objects.ts';
import { type ApiStatus, translateStatus } from './status.ts';

/** Asks for a pod to go, in the way that budgets can refuse. */
export async function evict(
  api: Api,
  pod: PodRef,
  { signal }: ClusterCallOptions = {},
): Promise<EvictionOutcome> {
  const doing = `evict pod ${pod.namespace}/${pod.name}`;
  const answer = await api.ask({
    method: 'POST',
    path: `${pathOfPod(pod)}/eviction`,
    body: {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: pod.name, namespace: pod.namespace },
      deleteOptions: { preconditions: { uid: pod.uid } },
    },
    doing,
    signal,
  });
  if (answer.ok) return { outcome: 'evicted' };
  const reason = budgetReason(answer.status);
  if (reason !== undefined) return { outcome: 'blocked', reason };
  if (answer.status.code === 404) return { outcome: 'already-gone' };
  if (answer.status.code === 409 && !(await isThere(api, pod, signal))) {
    return { outcome: 'already-gone' };
  }
  throw translateStatus(answer.status, doing);
}

/** 429 is also how an API server with too much to do answers; only with this cause was it a budget. */
function budgetReason({ code, message, causes }: ApiStatus): string | undefined {
  const budget = causes.find(({ reason }) => reason === 'DisruptionBudget');
  if (code === 429 && budget !== undefined) return budget.message || message;
  // Two budgets for one pod: an error to the API server, and as final as a budget's no.
  return code === 500 && message.includes('PodDisruptionBudget') ? message : undefined;
}

async function isThere(api: Api, pod: PodRef, signal: AbortSignal | undefined): Promise<boolean> {
  const doing = `read pod ${pod.namespace}/${pod.name}`;
  const answer = await api.ask<ApiObject>({ path: pathOfPod(pod), doing, signal });
  if (answer.ok) return answer.value.metadata.uid === pod.uid;
  if (answer.status.code === 404) return false;
  throw translateStatus(answer.status, doing);
}

function pathOfPod({ namespace, name }: PodRef): string {
  return pathOf('api', 'v1', 'namespaces', namespace, 'pods', name);
}
