// SPDX-License-Identifier: Apache-2.0
// Would a removal leave a pod pending? Its pods may fit elsewhere, but not all of them once kube-scheduler has placed the first
// ones, which it does on the emptiest nodes. A pod that is left would need a new machine, which would be removed next, and so on.

import type { Node } from '../model/node.ts';
import { podKey } from '../model/pod.ts';
import { type DrainAttempt, type Snapshot, simulateDrains } from '../scheduling/index.ts';
import { others, type Refused } from './removal-candidate.ts';
import { comparePods } from './scale-up.ts';

const PREFERENCES = ['free-after', 'balanced', 'free-before'] as const;

/** The nodes among those drained at the same time that are risky, by name. */
export function findRisky(
  nodes: readonly Node[],
  cluster: Snapshot,
  options: { readonly expendableBelow: number; readonly avoid: ReadonlySet<string> },
): ReadonlyMap<string, Refused> {
  const avoid = new Set([...options.avoid, ...nodes.map(({ name }) => name)]);
  const risky = new Map<string, Refused>();
  for (const preference of PREFERENCES) {
    simulateDrains(cluster, { ...options, avoid, preference }, (tryDrain) => {
      for (const node of nodes) {
        const attempt = tryDrain(node.name);
        if (!attempt.isPossible) risky.set(node.name, refusalOf(node, attempt));
      }
    });
  }
  return risky;
}

function refusalOf({ name }: Node, { left }: DrainAttempt): Refused {
  const [first] = left.toSorted(comparePods);
  const pod = first === undefined ? '' : podKey(first);
  return {
    code: 'NodePodsMightWait',
    reason: `node ${name} is kept: its pods fit on other nodes, but kube-scheduler would probably place them so that no node is left for pod ${pod}${others(left.length - 1)}`,
    facts: { pod, pods: left.length },
  };
}
