// SPDX-License-Identifier: Apache-2.0

import { DISK_PENDING_PHASES, type RegionFacts, reservationsOf } from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

/** What placement needs to know of a region: the view, and what our records reserve in addition. */
export function placementFacts(
  { records: { index, usage } }: ReconcileContext,
  { view, busyHosts }: { readonly view: RegionView; readonly busyHosts: readonly string[] },
): RegionFacts {
  return {
    hosts: view.hosts,
    vms: [],
    reservations: reservationsOf(index.inPhase(...DISK_PENDING_PHASES), view.region),
    allocations: usage.ledger(view),
    busyHosts,
  };
}
