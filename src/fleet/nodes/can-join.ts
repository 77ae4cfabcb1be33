// SPDX-License-Identifier: Apache-2.0

import { needsCluster } from '../context/join-settings.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';

/** Why no machine of the pool can be begun now, as far as joining goes; undefined when it can. */
export function joinRefusal(
  { clusterReading }: ReconcileContext,
  { name, joins, seed }: PoolSettings,
): { readonly code: string; readonly sentence: string } | undefined {
  if (!joins || clusterReading.kind === 'fresh') return undefined;
  if (clusterReading.kind === 'stale') {
    return { code: 'VIEW_STALE', sentence: `Kubernetes cannot be read: ${clusterReading.why}` };
  }
  if (seed === undefined || !needsCluster(seed.join)) return undefined;
  const sentence = `pool ${name} joins its machines to a cluster, and there is no access to one`;
  return { code: 'NoClusterAccess', sentence };
}
