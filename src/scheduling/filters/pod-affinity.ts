// SPDX-License-Identifier: Apache-2.0
import type { Reason } from '../reasons.ts';
import type { Candidate } from '../state/candidate.ts';
import type { DomainCounter } from '../state/domain-counter.ts';
import { NO_DOMAIN } from '../state/topology.ts';
import type { Filter } from './filter.ts';

export const interPodAffinity: Filter = (candidate, slot, world) =>
  podAffinity(candidate, slot, world) ?? podAntiAffinity(candidate, slot, world);

export const podAffinity: Filter = (candidate, { id }) =>
  candidate.wants.length === 0 ? undefined : affinity(candidate, id);

/** The pod's own refusals, and those of pods already there. */
export const podAntiAffinity: Filter = (candidate, { id }) =>
  antiAffinity(candidate.refuses, id, 'refuses') ??
  antiAffinity(candidate.group.refusedBy, id, 'refused-by');

function affinity({ wants, wantsItself }: Candidate, slot: number): Reason | undefined {
  // Every key must be there, even for the first of a series.
  const absent = wants.find((counter) => counter.topology.of(slot) === NO_DOMAIN);
  if (absent !== undefined) return nobody('label-missing', absent);
  const lonely = wants.find((counter) => counter.at(slot) === 0);
  if (lonely === undefined) return undefined;
  const isFirst = wantsItself && wants.every((counter) => counter.total === 0);
  return isFirst ? undefined : nobody('nobody-there', lonely);
}

function nobody(problem: 'label-missing' | 'nobody-there', counter: DomainCounter): Reason {
  return { filter: 'InterPodAffinity', problem, topologyKey: counter.topology.key };
}

function antiAffinity(
  counters: readonly DomainCounter[],
  slot: number,
  problem: 'refuses' | 'refused-by',
): Reason | undefined {
  for (const counter of counters) {
    const pods = counter.at(slot);
    if (pods > 0) return { ...described(counter, slot), problem, pods };
  }
  return undefined;
}

function described(
  { topology }: DomainCounter,
  slot: number,
): { readonly filter: 'InterPodAffinity'; readonly topologyKey: string; readonly domain: string } {
  return {
    filter: 'InterPodAffinity',
    topologyKey: topology.key,
    domain: topology.name(topology.of(slot)),
  };
}
