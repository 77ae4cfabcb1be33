// SPDX-License-Identifier: Apache-2.0
// The record of evictions: what the API server's audit log says about pods that were evicted or deleted, and about the
// health of PodDisruptionBudgets after each change of a pod.
import type { ControlPlane } from '../controlplane/index.ts';

const ACCOUNT = 'system:serviceaccount:pvescaler:pvescaler';

/** For `startControlPlane`. */
export const EVICTION_AUDIT_RULES: readonly object[] = [
  {
    level: 'Metadata',
    verbs: ['create'],
    resources: [{ group: '', resources: ['pods/eviction'] }],
  },
  {
    level: 'Metadata',
    users: [ACCOUNT],
    verbs: ['delete', 'deletecollection'],
    resources: [{ group: '', resources: ['pods'] }],
  },
  {
    level: 'Request',
    verbs: ['update'],
    resources: [{ group: 'policy', resources: ['poddisruptionbudgets/status'] }],
  },
  { level: 'None' },
];

interface BudgetUpdate {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status: {
    readonly expectedPods: number;
    readonly currentHealthy: number;
    readonly desiredHealthy: number;
  };
}

/** Names of the pods that pvescaler evicted. */
export function listEvictions(plane: ControlPlane): readonly string[] {
  return plane
    .readAuditLog()
    .filter(({ objectRef, responseStatus }) => {
      return objectRef.subresource === 'eviction' && responseStatus.code === 201;
    })
    .map(({ objectRef }) => objectRef.name ?? '');
}

/**
 * Pods that pvescaler deleted without an eviction, and budgets that had enough healthy pods and then lost too many. Pods of
 * a lost host are lost without an eviction: their budgets must not be judged.
 */
export function findBudgetViolations(plane: ControlPlane): readonly string[] {
  const violations: string[] = [];
  /** How many pods the workload of a budget had when enough of them were healthy. */
  const satisfied = new Map<string, number>();
  for (const { objectRef, verb, responseStatus, requestObject } of plane.readAuditLog()) {
    if (responseStatus.code >= 300 || objectRef.subresource === 'eviction') continue;
    if (objectRef.resource === 'pods') violations.push(`${verb} pod ${objectRef.name}`);
    if (objectRef.resource !== 'poddisruptionbudgets') continue;
    const { metadata, status } = requestObject as BudgetUpdate;
    const { expectedPods, currentHealthy, desiredHealthy } = status;
    if (currentHealthy >= desiredHealthy) satisfied.set(metadata.uid, expectedPods);
    else if (satisfied.get(metadata.uid) === expectedPods)
      violations.push(
        `budget ${metadata.name} has ${currentHealthy} of ${desiredHealthy} healthy pods`,
      );
  }
  return violations;
}
