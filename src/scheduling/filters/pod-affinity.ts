// SPDX-License-Identifier: Apache-2.0
import type { FilterReason } from '../reasons.ts';
import type { DomainCounter } from '../state/domain-counter.ts';
import type { PendingPod } from '../state/pending-pod.ts';
import { NO_DOMAIN } from '../state/topology.ts';
import type { Filter } from './filter.ts';

export const interPodAffinity: Filter = (pendingPod, nodeInfo, cluster) =>
  podAffinity(pendingPod, nodeInfo, cluster) ?? podAntiAffinity(pendingPod, nodeInfo, cluster);

export const podAffinity: Filter = (pendingPod, { id }) =>
  pendingPod.affinityCounters.length === 0 ? undefined : checkAffinity(pendingPod, id);

/** Checks the pod's own anti-affinity and that of existing pods. */
export const podAntiAffinity: Filter = (pendingPod, { id }) =>
  checkAntiAffinity(pendingPod.antiAffinityCounters, id, 'own-anti-affinity') ??
  checkAntiAffinity(pendingPod.labelGroup.rejectingCounters, id, 'existing-anti-affinity');

function checkAffinity(
  { affinityCounters, matchesOwnAffinity }: PendingPod,
  nodeInfo: number,
): FilterReason | undefined {
  // All topology keys must be present, even for the first pod of a series.
  const absent = affinityCounters.find(
    (counter) => counter.topology.domainOf(nodeInfo) === NO_DOMAIN,
  );
  if (absent !== undefined) return affinityReason('label-missing', absent);
  const unmatched = affinityCounters.find((counter) => counter.podsNear(nodeInfo) === 0);
  if (unmatched === undefined) return undefined;
  const isFirst = matchesOwnAffinity && affinityCounters.every((counter) => counter.total === 0);
  return isFirst ? undefined : affinityReason('no-matching-pod', unmatched);
}

function affinityReason(
  problem: 'label-missing' | 'no-matching-pod',
  counter: DomainCounter,
): FilterReason {
  return { filter: 'InterPodAffinity', problem, topologyKey: counter.topology.key };
}

function checkAntiAffinity(
  counters: readonly DomainCounter[],
  nodeInfo: number,
  problem: 'own-anti-affinity' | 'existing-anti-affinity',
): FilterReason | undefined {
  for (const counter of counters) {
    const pods = counter.podsNear(nodeInfo);
    if (pods > 0) return { ...domainOfReason(counter, nodeInfo), problem, pods };
  }
  return undefined;
}

function domainOfReason(
  { topology }: DomainCounter,
  nodeInfo: number,
): { readonly filter: 'InterPodAffinity'; readonly topologyKey: string; readonly domain: string } {
  return {
    filter: 'InterPodAffinity',
    topologyKey: topology.key,
    domain: topology.domainName(topology.domainOf(nodeInfo)),
  };
}
