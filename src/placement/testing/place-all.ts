// SPDX-License-Identifier: Apache-2.0
import { chooseHost } from '../hosts/choose-host.ts';
import type { Placed, PlacementRequest } from '../hosts/decision.ts';
import type { RegionFacts } from '../hosts/facts.ts';

/** The region after a placement, while the VM does not exist yet. */
function after(
  region: RegionFacts,
  request: PlacementRequest,
  { host, storage }: Placed,
): RegionFacts {
  const one = {
    vmId: 1_000 + region.reservations.length,
    pool: request.pool,
    host,
    cpus: request.size.cpu,
    memoryBytes: request.size.memoryBytes,
    storage,
    pendingDiskBytes: request.size.diskBytes,
  };
  return { ...region, reservations: [...region.reservations, one] };
}

/** Places machines until one is refused or `most` are placed. */
export function placeAll(request: PlacementRequest, region: RegionFacts, most = 1_000) {
  const placed: Placed[] = [];
  let facts = region;
  for (;;) {
    const decision = chooseHost(request, facts);
    if (!decision.placed || placed.length === most) return { placed, facts };
    placed.push(decision);
    facts = after(facts, request, decision);
  }
}
