// SPDX-License-Identifier: Apache-2.0
// How many machines of a size there is room for, by the very steps in which they would be placed: hosts that
// share a storage take from one account, so the sum over hosts would promise too much.
import { rankedOffers } from './choose-host.ts';
import type { RegionFacts } from './facts.ts';
import type { PlacementRequest } from './request.ts';
import { slotsOf } from './room.ts';
import { type Survey, surveyHosts } from './survey.ts';

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

function countSlots(survey: Survey, atMost: number): number {
  for (let count = 0; count < atMost; count += 1) {
    const [best] = rankedOffers(survey);
    if (best === undefined) return count;
    survey.hostBooks.book(best.host);
    survey.storageBooks.reserve(best.host, best.way.storage, survey.request.size.diskBytes);
  }
  return atMost;
}
