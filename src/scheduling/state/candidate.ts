// SPDX-License-Identifier: Apache-2.0
// A pod that looks for a place, with its questions to the cluster prepared. Pods that ask the same share one.

import { formatLabels } from '../../model/labels.ts';
import type { Node } from '../../model/node.ts';
import { matchesNode } from '../../model/node-selector.ts';
import type { Pod } from '../../model/pod.ts';
import type { PodAffinityTerm } from '../../model/pod-affinity.ts';
import { matches, type Selector } from '../../model/selector.ts';
import { findUntolerated } from '../../model/taints.ts';
import type { SpreadConstraint } from '../../model/topology-spread.ts';
import type { DomainCounter } from './domain-counter.ts';
import type { LabelGroup } from './label-group.ts';
import { meansOther } from './matching.ts';
import type { Demand } from './resource-names.ts';
import type { SpreadCounter } from './spread-counter.ts';
import type { World } from './world.ts';

export interface SpreadAsk {
  readonly constraint: SpreadConstraint;
  readonly counter: SpreadCounter;
  /** 1 when the pod would count itself. */
  readonly self: 0 | 1;
}

export interface Candidate {
  /** The first pod seen with these questions. */
  readonly pod: Pod;
  readonly key: string;
  /** Equal for pods that differ in what they request only. */
  readonly rulesKey: string;
  readonly demand: Demand;
  readonly group: LabelGroup;
  readonly spread: readonly SpreadAsk[];
  /** One counter for each affinity term: pods that *all* terms mean. */
  readonly wants: readonly DomainCounter[];
  /** The pod satisfies its own affinity, so the first of a series may start anywhere. */
  readonly wantsItself: boolean;
  readonly refuses: readonly DomainCounter[];
}

/** Whether the pod's selector and required affinity allow the node. */
export function allowsNode(pod: Pod, node: Node): boolean {
  for (const key of Object.keys(pod.nodeSelector)) {
    if (!Object.hasOwn(node.labels, key) || node.labels[key] !== pod.nodeSelector[key])
      return false;
  }
  return pod.nodeAffinity === undefined || matchesNode(pod.nodeAffinity, node);
}

export function nodeWishKey(pod: Pod): string {
  return JSON.stringify([formatLabels(pod.nodeSelector), pod.nodeAffinity?.terms]);
}

export function rulesKey(pod: Pod): string {
  return JSON.stringify([
    pod.namespace,
    formatLabels(pod.labels),
    pod.nodeName,
    pod.tolerations,
    nodeWishKey(pod),
    pod.preferredNodes,
    pod.affinity,
    pod.antiAffinity,
    pod.spread,
    pod.hostPorts,
    pod.volumes,
    // Claims made for one pod are of no use to another with the same questions.
    pod.volumes.length > 0 ? pod.uid : '',
  ]);
}

export function candidateKey(pod: Pod, rules: string): string {
  const { cpuMilli, memoryBytes, ephemeralStorageBytes, extended } = pod.requests;
  return `${cpuMilli} ${memoryBytes} ${ephemeralStorageBytes} ${JSON.stringify(extended)} ${rules}`;
}

export function newCandidate(pod: Pod, world: World): Candidate {
  const rules = rulesKey(pod);
  return {
    pod,
    key: candidateKey(pod, rules),
    rulesKey: rules,
    demand: world.resources.demand(pod.requests),
    group: world.group({ namespace: pod.namespace, labels: pod.labels, isTerminating: false }),
    spread: pod.spread.map((constraint) => ({
      constraint,
      counter: spreadCounter(pod, constraint, world),
      self: matches(constraint.selector, pod.labels) ? 1 : 0,
    })),
    wants: pod.affinity.map((term) => world.affinityCounter(pod.affinity, term.topologyKey)),
    wantsItself: isWantedByAll(pod.affinity, pod, world),
    refuses: pod.antiAffinity.map((term) => world.affinityCounter([term], term.topologyKey)),
  };
}

function isWantedByAll(terms: readonly PodAffinityTerm[], pod: Pod, world: World): boolean {
  return terms.every((term) => meansOther(term, pod, world.namespaces));
}

function spreadCounter(pod: Pod, constraint: SpreadConstraint, world: World): SpreadCounter {
  const { selector, topologyKey, honorsAffinity, honorsTaints } = constraint;
  // A node that lacks the key of any constraint of the pod counts for none of them.
  const keys = [...new Set(pod.spread.map((one) => one.topologyKey))].sort();
  return world.spreadCounter({
    key: JSON.stringify([
      pod.namespace,
      topologyKey,
      selector,
      keys,
      honorsAffinity && nodeWishKey(pod),
      honorsTaints && pod.tolerations,
    ]),
    topologyKey,
    counts: ({ namespace, labels }) =>
      namespace === pod.namespace && !isEmpty(selector) && matches(selector, labels),
    isEligible: (node) =>
      keys.every((key) => Object.hasOwn(node.labels, key)) &&
      (!honorsAffinity || allowsNode(pod, node)) &&
      (!honorsTaints || findUntolerated(node.taints, pod.tolerations) === undefined),
  });
}

// A selector without conditions matches the pod itself, but the scheduler counts no running pod for it.
function isEmpty(selector: Selector): boolean {
  return selector.selects === 'matching' && selector.requirements.length === 0;
}
