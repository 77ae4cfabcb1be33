// SPDX-License-Identifier: Apache-2.0
import type { PoolSettings } from '../settings.ts';
import type { Turn } from '../turn.ts';
import { needsCluster } from './join-settings.ts';

/** Why no machine of the pool can be begun now, as far as joining goes; undefined when it can. */
export function cannotJoin(
  { sight }: Turn,
  { name, joins, seed }: PoolSettings,
): { readonly code: string; readonly sentence: string } | undefined {
  if (!joins || sight.kind === 'fresh') return undefined;
  if (sight.kind === 'stale') {
    return { code: 'VIEW_STALE', sentence: `Kubernetes cannot be read: ${sight.why}` };
  }
  if (seed === undefined || !needsCluster(seed.join)) return undefined;
  const sentence = `pool ${name} joins its machines to a cluster, and there is no access to one`;
  return { code: 'NoClusterAccess', sentence };
}
