// SPDX-License-Identifier: Apache-2.0
// Would a removal leave a pod pending? Its pods may fit elsewhere, but not all of them once kube-scheduler has placed the first
// ones, which it does on the emptiest nodes. A pod that is left would need a new machine, which would be removed next, and so on.

import { type Pod, podKey } from '../model/pod.ts';
import { type Snapshot, simulateDrains } from '../scheduling/index.ts';
import { others, type Refused } from './removal-candidate.ts';
import { comparePods } from './scale-up.ts';

interface RiskOptions {
  readonly expendableBelow: number;
  readonly avoid: ReadonlySet<string>;
}

/** The nodes among those drained at the same time that are risky, by name. */
export function findRisky(
  nodes: readonly string[],
  cluster: Snapshot,
  options: RiskOptions,
): ReadonlyMap<string, Refused> {
  const waiting = findWaitingPods(nodes, cluster, options);
  return new Map([...waiting].map(([name, pods]) => [name, refusalOf(name, pods)]));
}

/** The pods that would wait when these nodes are drained at the same time, by node. */
export function findWaitingPods(
  nodes: readonly string[],
  cluster: Snapshot,
  options: RiskOptions,
): ReadonlyMap<string, readonly Pod[]> {
  const avoid = new Set([...options.avoid, ...nodes]);
  return simulateDrains(cluster, { ...options, avoid, asScheduled: true }, (tryDrain) => {
    const attempts = nodes.map((node) => ({ node, ...tryDrain(node) }));
    const failed = attempts.filter(({ isPossible }) => !isPossible);
    return new Map(failed.map(({ node, left }) => [node, left]));
  });
}

function refusalOf(name: string, left: readonly Pod[]): Refused {
  const [first] = left.toSorted(comparePods);
  const pod = first === undefined ? '' : podKey(first);
  return {
    code: 'NodePodsMightWait',
    reason: `node ${name} is kept: its pods fit on other nodes, but kube-scheduler would probably place them so that no node is left for pod ${pod}${others(left.length - 1)}`,
    facts: { pod, pods: left.length },
  };
}
