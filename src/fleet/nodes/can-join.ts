// SPDX-License-Identifier: Apache-2.0

import { needsCluster } from '../context/join-settings.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';

/** Why no machine of the pool could join now; undefined when it could. */
export function joinRefusal(
  { clusterReading }: ReconcileContext,
  { name, joins, seed }: PoolSettings,
): { readonly code: string; readonly message: string } | undefined {
  if (!joins || clusterReading.kind === 'fresh') return undefined;
  if (clusterReading.kind === 'stale') {
    return { code: 'VIEW_STALE', message: `Kubernetes cannot be read: ${clusterReading.why}` };
  }
  if (seed === undefined || !needsCluster(seed.join)) return undefined;
  const message = `pool ${name} joins its machines to a cluster, but no cluster is configured`;
  return { code: 'NoClusterAccess', message };
}
