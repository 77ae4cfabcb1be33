// SPDX-License-Identifier: Apache-2.0
// What a pass knows of the Kubernetes cluster. A view that is too old decides nothing; its Nodes still count where
// caution is enough: no VM id, name or address of a known Node is given to another machine.
import type { Clock } from '../../ports/clock.ts';
import {
  type Cluster,
  type ClusterNode,
  type ClusterView,
  isViewFresh,
} from '../../ports/cluster.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { DriverState } from './driver-state.ts';

export type ClusterReading =
  /** No cluster is configured: a machine whose guest is up is ready. */
  | { readonly kind: 'none' }
  | { readonly kind: 'stale'; readonly why: string; readonly lastNodes: readonly ClusterNode[] }
  | { readonly kind: 'fresh'; readonly cluster: Cluster; readonly view: ClusterView };

export async function readCluster(
  { cluster, clock }: { readonly cluster?: Cluster | undefined; readonly clock: Clock },
  state: DriverState,
): Promise<ClusterReading> {
  if (cluster === undefined) return { kind: 'none' };
  const view = await viewOf(cluster);
  const now = clock.now();
  if (typeof view !== 'string' && isViewFresh(view, now)) {
    // The cluster may have been unreachable for as long as there was no driver.
    if (state.clusterSeenAt === undefined) state.clusterStaleAt = clock.monotonic();
    state.lastNodes = view.nodes;
    state.clusterSeenAt = view.freshAt;
    return { kind: 'fresh', cluster, view };
  }
  state.clusterStaleAt = clock.monotonic();
  const why = typeof view === 'string' ? view : 'its last update is too old';
  return { kind: 'stale', why, lastNodes: state.lastNodes };
}

async function viewOf(cluster: Cluster): Promise<ClusterView | string> {
  try {
    return await cluster.view();
  } catch (error) {
    if (!(error instanceof PvescalerError) || error.code === 'CANCELLED') throw error;
    const { lastError } = error.facts;
    return lastError === undefined ? error.message : String(lastError);
  }
}

/** Nodes of the newest view, fresh or stale. */
export function knownNodes(reading: ClusterReading): readonly ClusterNode[] {
  if (reading.kind === 'none') return [];
  return reading.kind === 'fresh' ? reading.view.nodes : reading.lastNodes;
}
