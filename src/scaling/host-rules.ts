// SPDX-License-Identifier: Apache-2.0
// Which pods decide about the host of their machine?

import type { Pod } from '../model/pod.ts';
import { matchesSelector, type Selector } from '../model/selector.ts';
import type { Snapshot } from '../scheduling/index.ts';
import { REGION_LABEL, ZONE_LABEL } from './expected-nodes.ts';
import type { ScalingInput } from './input.ts';

export const HOST_LABELS: ReadonlySet<string> = new Set([ZONE_LABEL, REGION_LABEL]);

interface Rule {
  readonly topologyKey: string;
  readonly selector: Selector;
}

/** Whether the pod itself is spread over hosts, tied to one, or has volumes there. */
export function isHostRelevant(pod: Pod): boolean {
  if (hostRulesOf(pod).length > 0 || pod.volumes.length > 0) return true;
  if (Object.keys(pod.nodeSelector).some((label) => HOST_LABELS.has(label))) return true;
  const required = pod.nodeAffinity?.terms.flatMap(({ requirements }) => requirements) ?? [];
  return required.some(({ key }) => HOST_LABELS.has(key));
}

function hostRulesOf({ affinity, antiAffinity, spread }: Pod): readonly Rule[] {
  return onHosts([...affinity, ...antiAffinity, ...spread]);
}

function onHosts(rules: readonly Rule[]): readonly Rule[] {
  return rules.filter(({ topologyKey }) => HOST_LABELS.has(topologyKey));
}

/** Whether a pod that runs keeps others off its host. */
export function hasHostAntiAffinity(cluster: Snapshot): boolean {
  return runningPods(cluster).some(({ antiAffinity }) => onHosts(antiAffinity).length > 0);
}

function runningPods(cluster: Snapshot): readonly Pod[] {
  return cluster.nodes.flatMap(({ name }) => cluster.podsOn(name));
}

/**
 * Whether the host of a pod's machine matters: to the pod, or to others that must run on the same host, or on another one. Their
 * namespaces are not compared: a machine may be created on the host that it was planned for in any case.
 */
export function hostRelevance({
  pending,
  snapshot,
}: Pick<ScalingInput, 'pending' | 'snapshot'>): (pod: Pod) => boolean {
  const rules = [
    ...pending.flatMap(hostRulesOf),
    ...runningPods(snapshot).flatMap(({ antiAffinity }) => onHosts(antiAffinity)),
  ];
  const bySelector = new Map(rules.map(({ selector }) => [JSON.stringify(selector), selector]));
  const selectors = [...bySelector.values()];
  return (pod) =>
    isHostRelevant(pod) || selectors.some((selector) => matchesSelector(selector, pod.labels));
}
