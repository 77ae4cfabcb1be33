// SPDX-License-Identifier: Apache-2.0
// Counts how many machines of a size fit, by simulating their placement one after the other. Hosts may share a
// storage, so the sum over hosts would be too high.
import type { RegionFacts } from './facts.ts';
import { countHostSlots, type HostOffer, makeOffer } from './headroom.ts';
import { buildPlacementState, type CandidateHost, type PlacementState } from './placement-state.ts';
import type { PlacementRequest } from './request.ts';
import { compareOffers } from './strategies.ts';

export interface FreeSlots {
  /** How many machines would be placed one after the other. */
  readonly total: number;
  /** Counting stopped at `atMost`; more machines may fit. */
  readonly isCapped: boolean;
  /** How many machines each host could take alone; 0 for refused hosts. */
  readonly byHost: Readonly<Record<string, number>>;
}

/** Busy hosts have no slot now. Leave `busyHosts` out of the facts to count capacity only. */
export function countFreeSlots(
  request: PlacementRequest,
  facts: RegionFacts,
  atMost: number,
): FreeSlots {
  const state = buildPlacementState(request, facts);
  // Computed before placeUntilFull, which changes the state.
  const byHost = slotsByHost(state, facts, atMost);
  const total = placeUntilFull(state, atMost);
  return { total, isCapped: total === atMost, byHost };
}

function slotsByHost(state: PlacementState, { hosts }: RegionFacts, atMost: number) {
  const names = hosts.map(({ name }) => name).sort();
  const slots = new Map(names.map((name) => [name, 0]));
  for (const candidate of state.candidates) {
    const count = candidate.isBusy ? 0 : countHostSlots(candidate, state);
    slots.set(candidate.host.name, Math.min(count, atMost));
  }
  return Object.fromEntries(slots);
}

/** Places machines one after the other, and recomputes only the offers that a placement affects. */
function placeUntilFull(state: PlacementState, atMost: number): number {
  const { strategy } = state.request.placement;
  const before = (left: HostWithOffer, right: HostWithOffer) =>
    compareOffers(strategy, left.offer, right.offer);
  let queue = hostsWithOffers(state.candidates, state).sort(before);
  for (let count = 0; count < atMost; count += 1) {
    const best = queue.shift();
    if (best === undefined) return count;
    const { host, diskOption } = best.offer;
    state.allocations.addMachine(host);
    state.storageSpace.reserve(host, diskOption.storage, state.request.size.diskBytes);
    if (state.storageSpace.isShared(diskOption.storage)) {
      queue = hostsWithOffers(
        [best, ...queue].map(({ candidate }) => candidate),
        state,
      ).sort(before);
    } else {
      for (const again of hostsWithOffers([best.candidate], state))
        insertSorted(queue, again, before);
    }
  }
  return atMost;
}

interface HostWithOffer {
  readonly candidate: CandidateHost;
  readonly offer: HostOffer;
}

/** A host without capacity gets none later: nothing is freed while slots are counted. */
function hostsWithOffers(
  candidates: readonly CandidateHost[],
  state: PlacementState,
): HostWithOffer[] {
  return candidates.flatMap((candidate) => {
    const offer = candidate.isBusy ? undefined : makeOffer(candidate, state);
    return offer === undefined ? [] : [{ candidate, offer }];
  });
}

function insertSorted(
  queue: HostWithOffer[],
  one: HostWithOffer,
  before: (left: HostWithOffer, right: HostWithOffer) => number,
): void {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const there = queue[middle];
    if (there !== undefined && before(there, one) < 0) low = middle + 1;
    else high = middle;
  }
  queue.splice(low, 0, one);
}
