// SPDX-License-Identifier: Apache-2.0
import {
  byHost,
  type Decision,
  type HostReason,
  type Numbers,
  notPlaced,
  type Placed,
  type Refusal,
} from './decision.ts';
import type { RegionFacts } from './facts.ts';
import type { PlacementRequest } from './request.ts';
import { type Offer, offerOf, shortfalls } from './room.ts';
import { compareOffers, offerWords } from './strategies.ts';
import { type Candidate, type Survey, surveyHosts } from './survey.ts';

/** The host, storage and template for one machine, and for each other host why it was not taken. */
export function chooseHost(request: PlacementRequest, facts: RegionFacts): Decision {
  const survey = surveyHosts(request, facts);
  const refusals = [
    ...survey.refusals,
    ...survey.candidates.flatMap((candidate) => roomRefusals(candidate, survey)),
  ];
  const [best, ...rest] = rankedOffers(survey);
  return best === undefined ? notPlaced(refusals) : placed(best, { rest, refusals, request });
}

/** Of the hosts that have room now, the preferred first. */
function rankedOffers(survey: Survey): readonly Offer[] {
  const { strategy } = survey.request.placement;
  return survey.candidates
    .flatMap((candidate) => (candidate.isBusy ? [] : (offerOf(candidate, survey) ?? [])))
    .sort((left, right) => compareOffers(strategy, left, right));
}

function roomRefusals(candidate: Candidate, survey: Survey): readonly Refusal[] {
  if (offerOf(candidate, survey) === undefined) return shortfalls(candidate, survey);
  if (!candidate.isBusy) return [];
  const host = candidate.host.name;
  const sentence = `host ${host} has room, but as many creations under way as it may have`;
  return [{ host, reason: 'HostBusy', sentence, numbers: {} }];
}

interface Rest {
  readonly rest: readonly Offer[];
  readonly refusals: readonly Refusal[];
  readonly request: PlacementRequest;
}

function placed(best: Offer, { rest, refusals, request }: Rest): Placed {
  const { strategy } = request.placement;
  const passedOver = rest.map((offer) => anotherPreferred(offer, best, strategy));
  const { storage, template } = best.way;
  return {
    placed: true,
    host: best.host,
    storage,
    ...(template !== undefined && { template: { vmId: template.vmId, host: template.host } }),
    sentence: `host ${best.host}, storage ${storage}, by '${strategy}': ${offerWords(strategy, best)}`,
    numbers: numbersOf(best),
    others: [...refusals, ...passedOver].sort(byHost),
  };
}

function anotherPreferred(
  offer: Offer,
  best: Offer,
  strategy: PlacementRequest['placement']['strategy'],
): HostReason<'AnotherPreferred'> {
  const here = offerWords(strategy, offer);
  const there = offerWords(strategy, best);
  return {
    host: offer.host,
    reason: 'AnotherPreferred',
    sentence: `host ${offer.host} fits too (${here}), but '${strategy}' prefers ${best.host} (${there})`,
    numbers: numbersOf(offer),
  };
}

function numbersOf(offer: Offer): Numbers {
  const { memoryFreeBytes, cpusFree, diskFreeBytes, vms, poolMachines } = offer;
  return { memoryFreeBytes, cpusFree, diskFreeBytes, vms, poolMachines };
}
