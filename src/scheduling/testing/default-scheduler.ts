// SPDX-License-Identifier: Apache-2.0
// The choice of kube-scheduler with its default profile, for a model cluster: written from its documented formulas, without
// the code that predicts it.

import type { Node } from '../../model/node.ts';
import type { Pod } from '../../model/pod.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';

interface Cluster {
  /** With the pod that is being placed, or without. */
  readonly podsOn: (node: string) => readonly Pod[];
  readonly nodes: readonly Node[];
}

/** Of these nodes, those with the highest score. */
export function findPreferred(
  pod: Pod,
  feasible: readonly Node[],
  cluster: Cluster,
): readonly Node[] {
  const spread = spreadScores(pod, feasible, cluster);
  const scored = feasible.map((node, index) => ({
    node,
    score: fitScore(pod, node, cluster) + 2 * (spread[index] ?? 0),
  }));
  const most = Math.max(...scored.map(({ score }) => score));
  return scored.filter(({ score }) => score === most).map(({ node }) => node);
}

function fitScore({ requests }: Pod, node: Node, { podsOn }: Cluster): number {
  const resources = (['cpuMilli', 'memoryBytes'] as const).map((name) => {
    const total = node.allocatable[name];
    const used = podsOn(node.name).reduce((sum, one) => sum + one.requests[name], 0);
    return { total, used, after: used + requests[name] };
  });
  const least = resources.map(({ total, after }) => Math.trunc(((total - after) * 100) / total));
  const balance = (fractions: readonly number[]): number =>
    Math.trunc((1 - Math.abs((fractions[0] ?? 0) - (fractions[1] ?? 0)) / 2) * 100);
  const before = balance(resources.map(({ total, used }) => used / total));
  const after = balance(resources.map((one) => one.after / one.total));
  const free = Math.trunc(least.reduce((sum, one) => sum + one, 0) / least.length);
  return free + 50 + Math.trunc((50 + after - before) / 2);
}

function spreadScores(pod: Pod, feasible: readonly Node[], cluster: Cluster): readonly number[] {
  const isSibling = (one: Pod) =>
    one.namespace === pod.namespace &&
    Object.entries(pod.labels).every(([key, value]) => one.labels[key] === value);
  const countOn = (nodes: readonly Node[]): number =>
    nodes.flatMap(({ name }) => cluster.podsOn(name)).filter(isSibling).length;
  const zoneOf = ({ labels }: Node): string => labels[ZONE] ?? '';
  const zones = new Set(feasible.map(zoneOf)).size;
  const raw = feasible.map((node) => {
    const inZone = countOn(cluster.nodes.filter((one) => zoneOf(one) === zoneOf(node)));
    const onNode =
      node.labels[HOSTNAME] === undefined ? 0 : countOn([node]) * Math.log(feasible.length + 2) + 2;
    return Math.round(onNode + inZone * Math.log(zones + 2) + 4);
  });
  const most = Math.max(...raw);
  const least = Math.min(...raw);
  return raw.map((score) => Math.trunc((100 * (most + least - score)) / most));
}
