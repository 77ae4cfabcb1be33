// SPDX-License-Identifier: Apache-2.0
// Machines for pods that must run on the node of other pending pods, or all on one node. The usual order gives the pods
// that others must run beside the cheapest machine, on which the others may find no space.

import { termSelectsExisting } from '../state/affinity-terms.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { PodGroup } from './groups.ts';
import type { GroupPods, MachinePods } from './packing-task.ts';

const HOSTNAME = 'kubernetes.io/hostname';

/** Groups of which each, after the first ones, must run beside pods of one before it. */
export interface Companions {
  readonly groups: readonly GroupPods[];
  /** On how many nodes they can run at most. */
  readonly maxMachines: number;
}

export function findCompanions(
  all: readonly GroupPods[],
  cluster: ClusterState,
): readonly Companions[] {
  const followers = all.filter(({ group }) => mustShareNode(group));
  const leaders = new Map(
    followers.map((one) => [one, all.filter(({ group }) => selects(one.group, group, cluster))]),
  );
  return components(leaders).flatMap((groups) => {
    const sorted = sortCompanions(groups, leaders);
    const [first] = sorted;
    if (first === undefined || sorted.length < groups.length) return [];
    const roots = sorted.filter((one) => !leaders.has(one));
    const pods = roots.reduce((sum, one) => sum + one.pods, 0);
    return [{ groups: sorted, maxMachines: isSeries(first, leaders) ? 1 : pods }];
  });
}

function mustShareNode({ pendingPod }: PodGroup): boolean {
  return pendingPod.pod.affinity.some(({ topologyKey }) => topologyKey === HOSTNAME);
}

/** Whether a pod of the other group meets all terms. */
function selects({ pendingPod }: PodGroup, other: PodGroup, { namespaces }: ClusterState): boolean {
  return pendingPod.pod.affinity.every((term) =>
    termSelectsExisting(term, other.pendingPod.pod, namespaces),
  );
}

type Leaders = ReadonlyMap<GroupPods, readonly GroupPods[]>;

/** Followers with their leaders, and with what these lead. */
function components(leaders: Leaders): readonly (readonly GroupPods[])[] {
  const found = new Map<GroupPods, Set<GroupPods>>();
  for (const [follower, others] of leaders) {
    const joined = new Set([follower, ...others].flatMap((one) => [...(found.get(one) ?? [one])]));
    for (const one of joined) found.set(one, joined);
  }
  return [...new Set(found.values())].map((one) => [...one]);
}

/** Leaders first. Without those that no pod can be the first of. */
function sortCompanions(groups: readonly GroupPods[], leaders: Leaders): readonly GroupPods[] {
  const sorted = groups.filter((one) => !leaders.has(one));
  if (sorted.length === 0)
    sorted.push(...groups.filter((one) => isSeries(one, leaders)).slice(0, 1));
  for (let before = -1; before < sorted.length; ) {
    before = sorted.length;
    const known = new Set(sorted);
    sorted.push(
      ...groups.filter(
        (one) => !known.has(one) && leaders.get(one)?.some((leader) => known.has(leader)) === true,
      ),
    );
  }
  return sorted;
}

function isSeries(one: GroupPods, leaders: Leaders): boolean {
  return leaders.get(one)?.includes(one) === true;
}

/**
 * Distributes the pods evenly: to the fewest machines that can hold them, and to `more` machines than that. Pods for which the
 * largest machine has no space are left out.
 */
export function distributeCompanions(
  { groups, maxMachines }: Companions,
  { more, canHold }: { readonly more: number; readonly canHold: (pods: MachinePods) => boolean },
): readonly MachinePods[] {
  const least = leastMachines(groups, maxMachines, canHold);
  const count = Math.min(maxMachines, least + more);
  return Array.from({ length: count }, (_, machine) =>
    withoutExcess(sharesOf(groups, { machine, count }), canHold),
  );
}

/** The first machine has the most pods, and fewer the more machines there are. */
function leastMachines(
  groups: readonly GroupPods[],
  maxMachines: number,
  canHold: (pods: MachinePods) => boolean,
): number {
  let least = 1;
  let enough = maxMachines;
  while (least < enough) {
    const count = Math.floor((least + enough) / 2);
    if (canHold(sharesOf(groups, { machine: 0, count }))) enough = count;
    else least = count + 1;
  }
  return enough;
}

/** The first machines get one pod more if a group cannot be divided. */
function sharesOf(
  groups: readonly GroupPods[],
  { machine, count }: { readonly machine: number; readonly count: number },
): MachinePods {
  return new Map(
    groups.map(({ number, pods }) => [
      number,
      Math.floor(pods / count) + (machine < pods % count ? 1 : 0),
    ]),
  );
}

/** Leaves out pods of the last groups. */
function withoutExcess(pods: MachinePods, canHold: (pods: MachinePods) => boolean): MachinePods {
  const left = new Map(pods);
  for (const [number, count] of [...pods].toReversed()) {
    for (let rest = count; rest > 0 && !canHold(left); rest -= 1) left.set(number, rest - 1);
  }
  return left;
}
