// SPDX-License-Identifier: Apache-2.0
// Whether a pod may run on a node, and if not, the reason in the words of kube-scheduler. Written on its own, without
// `src/scheduling`, so that tests can compare the two.
import { hostPortsConflict } from '../../../model/host-port.ts';
import type { Node } from '../../../model/node.ts';
import type { Pod } from '../../../model/pod.ts';
import type { PodAffinityTerm } from '../../../model/pod-affinity.ts';
import { findShortfalls, subtractResources } from '../../../model/resources.ts';
import { isEmptySelector, matchesSelector } from '../../../model/selector.ts';
import { findUntoleratedTaint, formatTaint, tolerates } from '../../../model/taints.ts';
import type { SpreadConstraint } from '../../../model/topology-spread.ts';
import { matchesNodeRules } from '../controllers/kubernetes-model.ts';
import type { ClusterState, NodeState } from './node-state.ts';

/** Undefined when the node passes. */
type Filter = (pod: Pod, state: NodeState) => string | undefined;

const UNSCHEDULABLE = {
  key: 'node.kubernetes.io/unschedulable',
  value: '',
  effect: 'NoSchedule',
} as const;

const NODE_FILTERS: readonly Filter[] = [
  ({ tolerations }, { node }) => {
    const isAllowed =
      !node.isUnschedulable || tolerations.some((one) => tolerates(one, UNSCHEDULABLE));
    return isAllowed ? undefined : 'node(s) were unschedulable';
  },
  ({ tolerations }, { node }) => {
    const taint = findUntoleratedTaint(node.taints, tolerations);
    return taint && `node(s) had untolerated taint {${formatTaint(taint)}}`;
  },
  (pod, { node }) =>
    matchesNodeRules(pod, node) ? undefined : "node(s) didn't match Pod's node affinity/selector",
  (pod, { pods }) => {
    const taken = pods.flatMap(({ hostPorts }) => hostPorts);
    const isTaken = pod.hostPorts.some((port) => taken.some((one) => hostPortsConflict(port, one)));
    return isTaken ? "node(s) didn't have free ports for the requested pod ports" : undefined;
  },
  (pod, { node, requested }) => {
    const free = subtractResources(node.allocatable, requested);
    const [shortfall] = findShortfalls(pod.requests, free);
    if (shortfall === undefined) return undefined;
    return shortfall.resource === 'pods' ? 'Too many pods' : `Insufficient ${shortfall.resource}`;
  },
];

export type PodFilter = (state: NodeState) => string | undefined;

/** The filters of one pod in the current state. Create it anew after each binding. */
export function createPodFilter(pod: Pod, cluster: ClusterState): PodFilter {
  const rules: PodFilter[] = [
    ...NODE_FILTERS.map((filter) => (state: NodeState) => filter(pod, state)),
    ...spreadFilters(pod, cluster),
    ...affinityFilters(pod, cluster),
    ...antiAffinityFilters(pod, cluster),
  ];
  return (state) => {
    for (const rule of rules) {
      const reason = rule(state);
      if (reason !== undefined) return reason;
    }
    return undefined;
  };
}

function domainOf({ labels }: Node, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function isSelected(term: PodAffinityTerm, pod: Pod, { namespaces }: ClusterState): boolean {
  const isInNamespace =
    term.namespaces.includes(pod.namespace) ||
    matchesSelector(term.namespaceSelector, namespaces.get(pod.namespace) ?? {});
  return isInNamespace && matchesSelector(term.selector, pod.labels);
}

/** Domains of the key that have a pod for which the condition holds. */
function domainsWith(
  { nodes }: ClusterState,
  key: string,
  condition: (pod: Pod) => boolean,
): ReadonlySet<string> {
  const domains = nodes
    .filter(({ pods }) => pods.some(condition))
    .flatMap(({ node }) => domainOf(node, key) ?? []);
  return new Set(domains);
}

function affinityFilters(pod: Pod, cluster: ClusterState): readonly PodFilter[] {
  if (pod.affinity.length === 0) return [];
  const matchesAll = (one: Pod) => pod.affinity.every((term) => isSelected(term, one, cluster));
  const domains = pod.affinity.map(({ topologyKey }) => ({
    topologyKey,
    found: domainsWith(cluster, topologyKey, matchesAll),
  }));
  const isFirst = domains.every(({ found }) => found.size === 0) && matchesAll(pod);
  return [
    ({ node }) => {
      const isNear = domains.every(({ topologyKey, found }) => {
        const domain = domainOf(node, topologyKey);
        return domain !== undefined && (isFirst || found.has(domain));
      });
      return isNear ? undefined : "node(s) didn't match pod affinity rules";
    },
  ];
}

function antiAffinityFilters(pod: Pod, cluster: ClusterState): readonly PodFilter[] {
  const own = pod.antiAffinity.map(({ topologyKey, ...term }) => ({
    topologyKey,
    domains: domainsWith(cluster, topologyKey, (one) =>
      isSelected({ topologyKey, ...term }, one, cluster),
    ),
    reason: "node(s) didn't match pod anti-affinity rules",
  }));
  const terms = cluster.nodes.flatMap(({ node, pods }) =>
    pods.flatMap((other) =>
      other.antiAffinity
        .filter((term) => isSelected(term, pod, cluster))
        .map(({ topologyKey }) => ({
          topologyKey,
          domains: new Set([domainOf(node, topologyKey)].filter((one) => one !== undefined)),
          reason: "node(s) didn't satisfy existing pods anti-affinity rules",
        })),
    ),
  );
  return [...own, ...terms].map(({ topologyKey, domains, reason }) => ({ node }: NodeState) => {
    const domain = domainOf(node, topologyKey);
    return domain !== undefined && domains.has(domain) ? reason : undefined;
  });
}

function spreadFilters(pod: Pod, cluster: ClusterState): readonly PodFilter[] {
  return pod.spread.map((constraint) => spreadFilter(pod, cluster, constraint));
}

function spreadFilter(
  pod: Pod,
  cluster: ClusterState,
  { topologyKey, maxSkew, minDomains, selector, honorsAffinity, honorsTaints }: SpreadConstraint,
): PodFilter {
  const keys = pod.spread.map((one) => one.topologyKey);
  const counts = new Map<string, number>();
  const isCounted = (one: Pod) =>
    one.namespace === pod.namespace &&
    !one.isTerminating &&
    !isEmptySelector(selector) &&
    matchesSelector(selector, one.labels);
  for (const { node, pods } of cluster.nodes) {
    const domain = domainOf(node, topologyKey);
    if (domain === undefined || keys.some((key) => domainOf(node, key) === undefined)) continue;
    if (honorsAffinity && !matchesNodeRules(pod, node)) continue;
    if (honorsTaints && findUntoleratedTaint(node.taints, pod.tolerations) !== undefined) continue;
    counts.set(domain, (counts.get(domain) ?? 0) + pods.filter(isCounted).length);
  }
  const fewest = counts.size < minDomains ? 0 : Math.min(...counts.values());
  const own = isCounted(pod) ? 1 : 0;
  return ({ node }) => {
    const domain = domainOf(node, topologyKey);
    if (domain === undefined) {
      return "node(s) didn't match pod topology spread constraints (missing required label)";
    }
    const skew = (counts.get(domain) ?? 0) + own - fewest;
    return skew > maxSkew ? "node(s) didn't match pod topology spread constraints" : undefined;
  };
}
