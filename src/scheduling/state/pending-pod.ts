// SPDX-License-Identifier: Apache-2.0
// A pod to be placed, with its counters looked up in advance. Pods with equal requirements share one.

import { formatLabels } from '../../model/labels.ts';
import type { Node } from '../../model/node.ts';
import { matchesNode } from '../../model/node-selector.ts';
import type { Pod } from '../../model/pod.ts';
import type { PodAffinityTerm } from '../../model/pod-affinity.ts';
import { matchesSelector } from '../../model/selector.ts';
import type { SpreadConstraint } from '../../model/topology-spread.ts';
import { termSelectsExisting } from './affinity-terms.ts';
import type { ClusterState } from './cluster-state.ts';
import type { PendingPod } from './placed-pod.ts';
import type { SpreadCounter } from './spread-counter.ts';

export type { PendingPod, SpreadCheck } from './placed-pod.ts';

/** Whether the pod's selector and required affinity allow the node. */
export function podAllowsNode(pod: Pod, node: Node): boolean {
  for (const key of Object.keys(pod.nodeSelector)) {
    if (!Object.hasOwn(node.labels, key) || node.labels[key] !== pod.nodeSelector[key])
      return false;
  }
  return pod.nodeAffinity === undefined || matchesNode(pod.nodeAffinity, node);
}

export function nodeRulesKey(pod: Pod): string {
  return JSON.stringify([formatLabels(pod.nodeSelector), pod.nodeAffinity?.terms]);
}

const RULES_KEYS = new WeakMap<Pod, string>();

/** Equal for pods that differ in requests only. Computed once per pod, because a pod is packed again and again while it is pending. */
export function rulesKey(pod: Pod): string {
  const known = RULES_KEYS.get(pod) ?? newRulesKey(pod);
  RULES_KEYS.set(pod, known);
  return known;
}

function newRulesKey(pod: Pod): string {
  const text = JSON.stringify([pod.namespace, formatLabels(pod.labels), pod.nodeName]);
  const selector = formatLabels(pod.nodeSelector);
  const lists: readonly (readonly unknown[])[] = [
    pod.tolerations,
    selector === '' ? [] : [selector],
    pod.nodeAffinity === undefined ? [] : [pod.nodeAffinity.terms],
    pod.preferredNodes,
    pod.affinity,
    pod.antiAffinity,
    pod.spread,
    pod.hostPorts,
    pod.requiredFeatures,
    pod.resourceClaims,
    pod.volumes,
    // Claims of one pod cannot be used by another pod with equal requirements.
    pod.volumes.length > 0 ? [pod.uid] : [],
  ];
  // Most lists of most pods are empty.
  return lists.reduce(
    (key, list) => `${key},${list.length === 0 ? '' : JSON.stringify(list)}`,
    text,
  );
}

export function pendingPodKey(pod: Pod, rules: string): string {
  const { cpuMilli, memoryBytes, ephemeralStorageBytes, extended } = pod.requests;
  return `${cpuMilli} ${memoryBytes} ${ephemeralStorageBytes} ${JSON.stringify(extended)} ${rules}`;
}

export function newPendingPod(pod: Pod, cluster: ClusterState): PendingPod {
  return {
    pod,
    demand: cluster.resources.demand(pod.requests),
    labelGroup: cluster.group({
      namespace: pod.namespace,
      labels: pod.labels,
      isTerminating: false,
    }),
    spreadChecks: pod.spread.map((constraint) => ({
      constraint,
      counter: spreadCounter(pod, { constraint, keys: spreadKeys(pod) }, cluster),
      self: matchesSelector(constraint.selector, pod.labels) ? 1 : 0,
    })),
    affinityCounters: pod.affinity.map((term) =>
      cluster.affinityCounter(pod.affinity, term.topologyKey),
    ),
    matchesOwnAffinity: isSelectedByAll(pod.affinity, pod, cluster),
    antiAffinityCounters: pod.antiAffinity.map((term) =>
      cluster.affinityCounter([term], term.topologyKey),
    ),
  };
}

function isSelectedByAll(
  terms: readonly PodAffinityTerm[],
  pod: Pod,
  cluster: ClusterState,
): boolean {
  return terms.every((term) => termSelectsExisting(term, pod, cluster.namespaces));
}

// As in the scheduler, a node without the key of any of the pod's constraints is not eligible for all of them.
function spreadKeys({ spread }: Pod): readonly string[] {
  return [...new Set(spread.map(({ topologyKey }) => topologyKey))].sort();
}

interface CountedConstraint {
  readonly constraint: SpreadConstraint;
  /** Labels that a node must have to be counted. */
  readonly keys: readonly string[];
}

export function spreadCounter(
  pod: Pod,
  { constraint, keys }: CountedConstraint,
  cluster: ClusterState,
): SpreadCounter {
  const { selector, topologyKey, honorsAffinity, honorsTaints } = constraint;
  return cluster.spreadCounter({
    namespace: pod.namespace,
    selector,
    nodes: {
      key: JSON.stringify([
        topologyKey,
        keys,
        honorsAffinity && nodeRulesKey(pod),
        honorsTaints && pod.tolerations,
      ]),
      topologyKey,
      isEligible: (node) =>
        keys.every((key) => Object.hasOwn(node.labels, key)) &&
        (!honorsAffinity || podAllowsNode(pod, node)) &&
        (!honorsTaints || cluster.findUntoleratedTaint(pod, node) === undefined),
    },
  });
}
