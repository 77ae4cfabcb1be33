// SPDX-License-Identifier: Apache-2.0
import type { FilterReason } from '../reasons.ts';
import type { SpreadCheck } from '../state/pending-pod.ts';
import { NO_DOMAIN } from '../state/topology.ts';
import type { Filter } from './filter.ts';

export const podTopologySpread: Filter = ({ spreadChecks }, nodeInfo) => {
  for (const check of spreadChecks) {
    const reason = checkSpread(check, nodeInfo.id);
    if (reason !== undefined) return reason;
  }
  return undefined;
};

function checkSpread(
  { constraint, counter, self }: SpreadCheck,
  nodeInfo: number,
): FilterReason | undefined {
  const { topologyKey, maxSkew, minDomains } = constraint;
  const domain = counter.topology.domainOf(nodeInfo);
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
    domain: counter.topology.domainName(domain),
    matching,
    minimum,
    self,
    maxSkew,
  };
}
