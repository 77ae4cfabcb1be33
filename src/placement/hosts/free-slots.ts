// SPDX-License-Identifier: Apache-2.0
// How many machines of a size there is room for, by the very steps in which they would be placed: hosts that
// share a storage take from one account, so the sum over hosts would promise too much.
import type { RegionFacts } from './facts.ts';
import type { PlacementRequest } from './request.ts';
import { type Offer, offerOf, slotsOf } from './room.ts';
import { compareOffers } from './strategies.ts';
import { type Candidate, type Survey, surveyHosts } from './survey.ts';

export interface FreeSlots {
  /** As many as would be placed, one after the other. */
  readonly total: number;
  /** Counting ended at `atMost`; there may be room for more. */
  readonly isCapped: boolean;
  /** As many as each host alone could take; hosts that are refused have 0. */
  readonly byHost: Readonly<Record<string, number>>;
}

/** Busy hosts have no slot now: leave `busyHosts` out of the facts to ask for capacity. */
export function freeSlots(
  request: PlacementRequest,
  facts: RegionFacts,
  atMost: number,
): FreeSlots {
  const survey = surveyHosts(request, facts);
  // Before the count, which fills the books.
  const byHost = slotsByHost(survey, facts, atMost);
  const total = countSlots(survey, atMost);
  return { total, isCapped: total === atMost, byHost };
}

function slotsByHost(survey: Survey, { hosts }: RegionFacts, atMost: number) {
  const names = hosts.map(({ name }) => name).sort();
  const slots = new Map(names.map((name) => [name, 0]));
  for (const candidate of survey.candidates) {
    const count = candidate.isBusy ? 0 : slotsOf(candidate, survey);
    slots.set(candidate.host.name, Math.min(count, atMost));
  }
  return Object.fromEntries(slots);
}

/** One after the other, as they would be placed. Only what a step changes is looked at again. */
function countSlots(survey: Survey, atMost: number): number {
  const { strategy } = survey.request.placement;
  const before = (left: Open, right: Open) => compareOffers(strategy, left.offer, right.offer);
  let queue = openOnes(survey.candidates, survey).sort(before);
  for (let count = 0; count < atMost; count += 1) {
    const best = queue.shift();
    if (best === undefined) return count;
    const { host, way } = best.offer;
    survey.hostBooks.book(host);
    survey.storageBooks.reserve(host, way.storage, survey.request.size.diskBytes);
    if (survey.storageBooks.isShared(way.storage)) {
      queue = openOnes(
        [best, ...queue].map(({ candidate }) => candidate),
        survey,
      ).sort(before);
    } else {
      for (const again of openOnes([best.candidate], survey)) insert(queue, again, before);
    }
  }
  return atMost;
}

interface Open {
  readonly candidate: Candidate;
  readonly offer: Offer;
}

/** A host that has no room has none later either: nothing is given back while slots are counted. */
function openOnes(candidates: readonly Candidate[], survey: Survey): Open[] {
  return candidates.flatMap((candidate) => {
    const offer = candidate.isBusy ? undefined : offerOf(candidate, survey);
    return offer === undefined ? [] : [{ candidate, offer }];
  });
}

/** Into a sorted list, at its place. */
function insert(queue: Open[], one: Open, before: (left: Open, right: Open) => number): void {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const there = queue[middle];
    if (there !== undefined && before(there, one) < 0) low = middle + 1;
    else high = middle;
  }
  queue.splice(low, 0, one);
}
