// SPDX-License-Identifier: Apache-2.0
// Which machines can be drained one after the other when others are added, where kube-scheduler would place their pods?

import type { Node } from '../model/node.ts';
import {
  type ChooseTied,
  type PlannedMachine,
  type Snapshot,
  simulateDrains,
  withExpectedNodes,
} from '../scheduling/index.ts';
import { topologyLabels } from './expected-nodes.ts';
import type { ScalingHost, ScalingInput } from './input.ts';
import { hostKey } from './pool-offers.ts';
import type { Candidate } from './removal-candidate.ts';

/** Nodes with the same score are chosen at random: a replacement must succeed in each of these simulations, too. */
const CHECKED_SEEDS = [1, 2, 3, 4];

export interface DrainPlan {
  readonly machines: readonly PlannedMachine[];
  /** In the order in which they are drained. */
  readonly candidates: readonly Candidate[];
  /** Of nodes with the same score. Absent: the first. */
  readonly chooseTied?: ChooseTied;
}

/** Those that can be drained, in this order, as many at a time as their pools allow. */
export function findDrainable(
  input: ScalingInput,
  cluster: Snapshot,
  { machines, candidates, chooseTied }: DrainPlan,
): readonly Candidate[] {
  const avoid = new Set(input.unreadyNodes);
  const options = {
    expendableBelow: input.settings.expendablePriority,
    avoid,
    asScheduled: true,
    chooseTied,
  };
  const after = withExpectedNodes(cluster, placeOnHosts(input, machines));
  return simulateDrains(after, options, (tryDrain) =>
    batchesOf(candidates).flatMap((batch) => {
      for (const { node } of batch) avoid.add(node.name);
      return batch.filter(({ node }) => {
        const { isPossible } = tryDrain(node.name);
        if (!isPossible) avoid.delete(node.name);
        return isPossible;
      });
    }),
  );
}

/** Whether all can be drained, whichever of equal nodes are chosen. */
export function areSurelyDrainable(
  input: ScalingInput,
  cluster: Snapshot,
  plan: DrainPlan,
): boolean {
  return CHECKED_SEEDS.every((seed) => {
    const drained = findDrainable(input, cluster, { ...plan, chooseTied: pseudoRandom(seed) });
    return drained.length === plan.candidates.length;
  });
}

/** A linear congruential generator: only the variety matters, not the quality. */
export function pseudoRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Machines that are drained at the same time: of each pool as many as it allows. */
function batchesOf(candidates: readonly Candidate[]): readonly (readonly Candidate[])[] {
  const counts = new Map<string, number>();
  const numbered = candidates.map((candidate) => {
    const { name, scaleDown } = candidate.state.pool.config;
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    return { candidate, batch: Math.floor(count / scaleDown.maxConcurrent) };
  });
  return [...Map.groupBy(numbered, ({ batch }) => batch)]
    .toSorted(([left], [right]) => left - right)
    .map(([, batch]) => batch.map(({ candidate }) => candidate));
}

/** With the zones of hosts: the scheduler spreads pods over them. Each is placed on the host with the fewest machines. */
function placeOnHosts(
  { hosts, machines: present, pools }: ScalingInput,
  machines: readonly PlannedMachine[],
): readonly Node[] {
  const counts = new Map<string, number>();
  const countOn = (host: string): number => counts.get(host) ?? 0;
  for (const { placement } of present) {
    if (placement === undefined) continue;
    const host = hostKey({ region: placement.region, name: placement.host });
    counts.set(host, countOn(host) + 1);
  }
  const known = new Set(hosts.map(hostKey));
  return machines.map(({ node, pool, domain }) => {
    const config = pools.find((one) => one.config.name === pool)?.config;
    const [host] = hosts
      .filter((one) => isUsable(one, pool))
      .toSorted((left, right) => countOn(hostKey(left)) - countOn(hostKey(right)));
    if (known.has(domain) || host === undefined || config === undefined) return node;
    counts.set(hostKey(host), countOn(hostKey(host)) + 1);
    const labels = topologyLabels(config, { region: host.region, host: host.name });
    return { ...node, labels: { ...labels, ...node.labels } };
  });
}

function isUsable({ pools }: ScalingHost, pool: string): boolean {
  const capacity = pools[pool];
  return capacity !== undefined && capacity.refusal === undefined;
}
