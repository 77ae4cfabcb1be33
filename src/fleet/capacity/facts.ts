// SPDX-License-Identifier: Apache-2.0

import { type RegionFacts, reservationsOf } from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { Turn } from '../turn.ts';

/** What placement has to know of a region: the view, and what our records promise beyond it. */
export function placementFacts(
  turn: Turn,
  { view, busyHosts }: { readonly view: RegionView; readonly busyHosts: readonly string[] },
): RegionFacts {
  return {
    hosts: view.hosts,
    // A container takes its part of a host as a VM does.
    vms: [...view.vms, ...view.containers],
    reservations: reservationsOf(turn.books.machines, view.region),
    busyHosts,
  };
}
