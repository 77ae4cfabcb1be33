// SPDX-License-Identifier: Apache-2.0
// What a round knows of the cluster. A view that is too old decides nothing; what it said last still counts where
// only care is asked for: no VM id, name or address that a Node has is given to another machine.
import type { Cluster, ClusterNode, ClusterView } from '../../ports/cluster.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { DriverState } from './driver-state.ts';
import type { FleetOptions } from './options.ts';

/** A healthy connection proves itself once a minute. */
const TOO_OLD_MS = 90_000;
/** A clock that is kept in step goes back a little now and then. */
const CLOCK_JITTER_MS = 1_000;

export type ClusterReading =
  /** There is no cluster: a machine whose guest is up is ready. */
  | { readonly kind: 'none' }
  | { readonly kind: 'stale'; readonly why: string; readonly lastNodes: readonly ClusterNode[] }
  | { readonly kind: 'fresh'; readonly cluster: Cluster; readonly view: ClusterView };

export async function readCluster(
  { cluster, clock }: Pick<FleetOptions, 'cluster' | 'clock'>,
  state: DriverState,
): Promise<ClusterReading> {
  if (cluster === undefined) return { kind: 'none' };
  const view = await viewOf(cluster);
  const now = clock.now();
  if (typeof view !== 'string' && isFresh(view, now)) {
    // Nobody knows how it was before the first look: Kubernetes may have been away as long as there was no driver.
    if (state.clusterSeenAt === undefined) state.clusterStaleAt = now;
    state.lastNodes = view.nodes;
    state.clusterSeenAt = view.freshAt;
    return { kind: 'fresh', cluster, view };
  }
  state.clusterStaleAt = now;
  const why = typeof view === 'string' ? view : 'nothing has been heard from it for too long';
  return { kind: 'stale', why, lastNodes: state.lastNodes };
}

/** One from the future is as old as nobody knows: the wall clock was set back since. */
function isFresh({ freshAt }: ClusterView, now: number): boolean {
  const ageMs = now - freshAt;
  return ageMs <= TOO_OLD_MS && ageMs >= -CLOCK_JITTER_MS;
}

async function viewOf(cluster: Cluster): Promise<ClusterView | string> {
  try {
    return await cluster.view();
  } catch (error) {
    if (!(error instanceof PvescalerError) || error.code === 'CANCELLED') throw error;
    const { lastTrouble } = error.facts;
    return lastTrouble === undefined ? error.message : String(lastTrouble);
  }
}

/** Of the newest view there was. */
export function knownNodes(lookup: ClusterReading): readonly ClusterNode[] {
  if (lookup.kind === 'none') return [];
  return lookup.kind === 'fresh' ? lookup.view.nodes : lookup.lastNodes;
}
