// SPDX-License-Identifier: Apache-2.0
import {
  compareHosts,
  type HostDecision,
  type HostReason,
  type HostRefusal,
  notPlaced,
  type Placed,
  type ReasonNumbers,
} from './decision.ts';
import type { RegionFacts } from './facts.ts';
import { type HostOffer, makeOffer, shortfallRefusals } from './headroom.ts';
import { buildPlacementState, type CandidateHost, type PlacementState } from './placement-state.ts';
import type { PlacementRequest } from './request.ts';
import { compareOffers, describeOffer } from './strategies.ts';

/** Chooses host, storage and template for one machine, and explains why each other host was not chosen. */
export function chooseHost(request: PlacementRequest, facts: RegionFacts): HostDecision {
  const state = buildPlacementState(request, facts);
  const refusals = [
    ...state.refusals,
    ...state.candidates.flatMap((candidate) => capacityRefusals(candidate, state)),
  ];
  const [best, ...rest] = rankedOffers(state);
  return best === undefined ? notPlaced(refusals) : placed(best, { rest, refusals, request });
}

/** Offers of the hosts with enough capacity, best first. */
function rankedOffers(state: PlacementState): readonly HostOffer[] {
  const { strategy } = state.request.placement;
  return state.candidates
    .flatMap((candidate) => (candidate.isBusy ? [] : (makeOffer(candidate, state) ?? [])))
    .sort((left, right) => compareOffers(strategy, left, right));
}

function capacityRefusals(candidate: CandidateHost, state: PlacementState): readonly HostRefusal[] {
  if (makeOffer(candidate, state) === undefined) return shortfallRefusals(candidate, state);
  if (!candidate.isBusy) return [];
  const host = candidate.host.name;
  const message = `host ${host} has capacity, but already runs its maximum number of concurrent creations`;
  return [{ host, reason: 'HostBusy', message, numbers: {} }];
}

interface Rest {
  readonly rest: readonly HostOffer[];
  readonly refusals: readonly HostRefusal[];
  readonly request: PlacementRequest;
}

function placed(best: HostOffer, { rest, refusals, request }: Rest): Placed {
  const { strategy } = request.placement;
  const passedOver = rest.map((offer) => preferredElsewhere(offer, best, strategy));
  const { storage, template } = best.diskOption;
  return {
    placed: true,
    host: best.host,
    storage,
    ...(template !== undefined && { template: { vmId: template.vmId, host: template.host } }),
    message: `host ${best.host}, storage ${storage}, by strategy '${strategy}': ${describeOffer(strategy, best)}`,
    numbers: numbersOf(best),
    others: [...refusals, ...passedOver].sort(compareHosts),
  };
}

function preferredElsewhere(
  offer: HostOffer,
  best: HostOffer,
  strategy: PlacementRequest['placement']['strategy'],
): HostReason<'AnotherPreferred'> {
  const here = describeOffer(strategy, offer);
  const there = describeOffer(strategy, best);
  return {
    host: offer.host,
    reason: 'AnotherPreferred',
    message: `host ${offer.host} fits too (${here}), but strategy '${strategy}' prefers ${best.host} (${there})`,
    numbers: numbersOf(offer),
  };
}

function numbersOf(offer: HostOffer): ReasonNumbers {
  const { memoryFreeBytes, cpusFree, diskFreeBytes, vms, poolMachines } = offer;
  return { memoryFreeBytes, cpusFree, diskFreeBytes, vms, poolMachines };
}
