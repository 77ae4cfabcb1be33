// SPDX-License-Identifier: Apache-2.0
// The node that kube-scheduler 1.36 chooses for a pod with the score plugins and weights of its default profile. Not
// known here: the sizes of images (ImageLocality), preferred affinity to pods, and Services, which narrow default
// spreading. Pods without requests count as nothing; the scheduler assumes 100m and 200 MB for each of their containers.
// Of several nodes with the highest score it chooses one at random.

import { matchesNodeTerm } from '../model/node-selector.ts';
import type { Pod } from '../model/pod.ts';
import { tolerates } from '../model/taints.ts';
import type { SpreadConstraint } from '../model/topology-spread.ts';
import type { ClusterState } from './state/cluster-state.ts';
import type { NodeInfo } from './state/node-info.ts';
import { spreadCounter } from './state/pending-pod.ts';
import type { MovingPod, SpreadScore } from './state/placed-pod.ts';
import { CPU, MEMORY } from './state/resource-names.ts';
import { NO_DOMAIN } from './state/topology.ts';

const MAX_SCORE = 100;
const WEIGHTS = { taints: 3, affinity: 2, spread: 2 };
const HOSTNAME = 'kubernetes.io/hostname';
/** Its system defaults, for pods of these controllers that have no spread constraint. */
const DEFAULT_SPREAD = [
  { topologyKey: HOSTNAME, maxSkew: 3 },
  { topologyKey: 'topology.kubernetes.io/zone', maxSkew: 5 },
];
const SPREAD_CONTROLLERS = new Set(['ReplicaSet', 'ReplicationController', 'StatefulSet']);
/** Differ between the pods of a StatefulSet, so that its selector has none of them. */
const POD_LABELS = new Set([
  'statefulset.kubernetes.io/pod-name',
  'apps.kubernetes.io/pod-index',
  'controller-revision-hash',
]);

/** Of these nodes, each of which accepts the pod, those with the highest score. */
export function preferredByDefaultScores(
  moving: MovingPod,
  nodes: readonly NodeInfo[],
  cluster: ClusterState,
): readonly NodeInfo[] {
  if (nodes.length < 2) return nodes;
  const { pod } = moving.pendingPod;
  const parts = [
    spreadScores(spreadOf(moving, cluster), nodes),
    affinityScores(pod, nodes),
    taintScores(pod, nodes),
  ].filter((scores) => scores !== undefined);
  let best: NodeInfo[] = [];
  let most = Number.NEGATIVE_INFINITY;
  for (const [index, nodeInfo] of nodes.entries()) {
    const score = parts.reduce(
      (sum, scores) => sum + (scores[index] ?? 0),
      resourceScore(moving, nodeInfo),
    );
    if (score === most) best.push(nodeInfo);
    if (score <= most) continue;
    best = [nodeInfo];
    most = score;
  }
  return best;
}

/** NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation, rounded as they round. */
function resourceScore({ cpuMilli, memoryBytes }: MovingPod, nodeInfo: NodeInfo): number {
  const cpu = fractionsOf(nodeInfo, CPU, cpuMilli);
  const memory = fractionsOf(nodeInfo, MEMORY, memoryBytes);
  const least = Math.floor((cpu.left + memory.left) / 2);
  if (cpuMilli === 0 && memoryBytes === 0) return least;
  const balance = (from: 'before' | 'after'): number =>
    Math.floor((1 - Math.abs(cpu[from] - memory[from]) / 2) * MAX_SCORE);
  const half = MAX_SCORE / 2;
  return least + half + Math.floor((half + balance('after') - balance('before')) / 2);
}

function fractionsOf(nodeInfo: NodeInfo, resource: number, request: number) {
  const allocatable = Math.max(1, nodeInfo.allocatable[resource] ?? 0);
  const used = nodeInfo.used[resource] ?? 0;
  return {
    left: Math.floor((Math.max(0, allocatable - used - request) * MAX_SCORE) / allocatable),
    before: Math.min(1, used / allocatable),
    after: Math.min(1, (used + request) / allocatable),
  };
}

/** NodeAffinity: the weights of the preferred terms that match. */
function affinityScores(
  { preferredNodes }: Pod,
  nodes: readonly NodeInfo[],
): readonly number[] | undefined {
  if (preferredNodes.length === 0) return undefined;
  const sums = nodes.map(({ node }) =>
    preferredNodes.reduce(
      (sum, { weight, term }) => sum + (matchesNodeTerm(term, node) ? weight : 0),
      0,
    ),
  );
  const most = Math.max(...sums);
  if (most === 0) return undefined;
  return sums.map((sum) => WEIGHTS.affinity * Math.floor((MAX_SCORE * sum) / most));
}

/** TaintToleration: few taints PreferNoSchedule that the pod does not tolerate. */
function taintScores(
  { tolerations }: Pod,
  nodes: readonly NodeInfo[],
): readonly number[] | undefined {
  const counts = nodes.map(
    ({ node }) =>
      node.taints.filter(
        (taint) =>
          taint.effect === 'PreferNoSchedule' &&
          !tolerations.some((toleration) => tolerates(toleration, taint)),
      ).length,
  );
  const most = Math.max(...counts);
  if (most === 0) return undefined;
  return counts.map(
    (count) => WEIGHTS.taints * (MAX_SCORE - Math.floor((MAX_SCORE * count) / most)),
  );
}

/** PodTopologySpread: few matching pods in the node's domains. */
function spreadScores(
  spread: readonly SpreadScore[],
  nodes: readonly NodeInfo[],
): readonly number[] | undefined {
  if (spread.length === 0) return undefined;
  const counted = nodes.filter(({ id }) => hasNeededLabels(spread, id));
  const weighted = spread.map((one) => ({ ...one, weight: Math.log(sizeOf(one, counted) + 2) }));
  const counts = nodes.map(({ id }) => countFor(weighted, id));
  const known = counts.filter((count) => count !== undefined);
  const most = Math.max(0, ...known);
  const least = Math.min(...known);
  return counts.map((count) => {
    if (count === undefined) return 0;
    const score = most === 0 ? MAX_SCORE : Math.floor((MAX_SCORE * (most + least - count)) / most);
    return WEIGHTS.spread * score;
  });
}

/** Undefined for a node that lacks a label which all constraints need. */
function countFor(
  spread: readonly (SpreadScore & { readonly weight: number })[],
  nodeId: number,
): number | undefined {
  let sum = 0;
  for (const { counter, maxSkew, isNeeded, weight } of spread) {
    const domain = counter.topology.domainOf(nodeId);
    if (domain !== NO_DOMAIN) sum += counter.inDomain(domain) * weight + maxSkew - 1;
    else if (isNeeded) return undefined;
  }
  return Math.round(sum);
}

/**
 * A constraint that the pod does not state itself also counts the nodes without the label, as one domain. For host names the
 * scheduler counts nodes.
 */
function sizeOf({ counter: { topology } }: SpreadScore, nodes: readonly NodeInfo[]): number {
  if (topology.key === HOSTNAME) return nodes.length;
  return new Set(nodes.map(({ id }) => topology.domainOf(id))).size;
}

function hasNeededLabels(spread: readonly SpreadScore[], nodeId: number): boolean {
  return spread.every(
    ({ counter: { topology }, isNeeded }) => !isNeeded || topology.domainOf(nodeId) !== NO_DOMAIN,
  );
}

/** Looked up once per pod. */
function spreadOf(moving: MovingPod, cluster: ClusterState): readonly SpreadScore[] {
  moving.spreadScores ??= newSpreadScores(moving.pendingPod.pod, cluster);
  return moving.spreadScores;
}

function newSpreadScores(pod: Pod, cluster: ClusterState): readonly SpreadScore[] {
  const { softSpread = [] } = pod;
  const isDefault = pod.spread.length + softSpread.length === 0;
  const constraints = isDefault ? defaultSpread(pod) : softSpread;
  const keys = isDefault ? [] : [...new Set(constraints.map(({ topologyKey }) => topologyKey))];
  return constraints.map((constraint) => ({
    counter: spreadCounter(pod, { constraint, keys }, cluster),
    maxSkew: constraint.maxSkew,
    isNeeded: !isDefault,
  }));
}

/** The selector of the controller is not known. The labels of its pods select the same pods. */
function defaultSpread({ controller, labels }: Pod): readonly SpreadConstraint[] {
  if (!SPREAD_CONTROLLERS.has(controller?.kind ?? '')) return [];
  const requirements = Object.entries(labels)
    .filter(([key]) => !POD_LABELS.has(key))
    .map(([key, value]) => ({ key, operator: 'In' as const, values: [value] }));
  if (requirements.length === 0) return [];
  const selector = { selects: 'matching' as const, requirements };
  return DEFAULT_SPREAD.map((one) => ({
    ...one,
    selector,
    minDomains: 1,
    honorsAffinity: true,
    honorsTaints: false,
  }));
}
