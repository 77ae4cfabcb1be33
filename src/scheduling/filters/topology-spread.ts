// SPDX-License-Identifier: Apache-2.0
import type { Reason } from '../reasons.ts';
import type { SpreadAsk } from '../state/candidate.ts';
import { NO_DOMAIN } from '../state/topology.ts';
import type { Filter } from './filter.ts';

export const podTopologySpread: Filter = ({ spread }, slot) => {
  for (const ask of spread) {
    const reason = judge(ask, slot.id);
    if (reason !== undefined) return reason;
  }
  return undefined;
};

function judge({ constraint, counter, self }: SpreadAsk, slot: number): Reason | undefined {
  const { topologyKey, maxSkew, minDomains } = constraint;
  const domain = counter.topology.of(slot);
  if (domain === NO_DOMAIN) {
    return { filter: 'PodTopologySpread', problem: 'label-missing', topologyKey };
  }
  const minimum = counter.domains < minDomains ? 0 : counter.minimum;
  const matching = counter.inDomain(domain);
  if (matching + self - minimum <= maxSkew) return undefined;
  return {
    filter: 'PodTopologySpread',
    problem: 'skew',
    topologyKey,
    domain: counter.topology.name(domain),
    matching,
    minimum,
    self,
    maxSkew,
  };
}
