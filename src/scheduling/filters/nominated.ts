// SPDX-License-Identifier: Apache-2.0
// Checks a pod on a node while the scheduler is preempting other pods there for nominated pods. As in the
// scheduler, the pod must fit with them and without them, because they may be placed elsewhere. The scheduler
// prepares a filter before it adds nominated pods. That has consequences which are reproduced here on purpose:
// a filter that had nothing to check ignores them, and topology spread counts some that it does not count as
// placed pods.

import { disksConflict, isExclusiveDisk } from '../../model/in-tree-disk.ts';
import type { Pod } from '../../model/pod.ts';
import { isEmptySelector } from '../../model/selector.ts';
import type { FilterReason } from '../reasons.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { NodeInfo } from '../state/node-info.ts';
import type { PendingPod } from '../state/pending-pod.ts';
import { runAllFilters } from './all.ts';

interface Check {
  readonly pendingPod: PendingPod;
  readonly nodeInfo: NodeInfo;
  readonly cluster: ClusterState;
}

/** The nominated pods to which this pod must yield. */
export function rivalsOf(pod: Pod, nominated: readonly Pod[] = []): readonly Pod[] {
  return nominated.filter((other) => other.priority >= pod.priority && other.uid !== pod.uid);
}

/** The reasons with the rivals placed or, if there are none, the reasons without them. */
export function runAllFiltersWith(rivals: readonly Pod[], check: Check): readonly FilterReason[] {
  const { pendingPod, nodeInfo, cluster } = check;
  const without = runAllFilters(pendingPod, nodeInfo, cluster);
  if (rivals.length === 0) return without;
  const ignoresAffinity = hasNoAffinityToCheck(pendingPod);
  const reasons = whilePlaced(rivals, check, () =>
    runAllFilters(pendingPod, nodeInfo, cluster),
  ).filter(
    ({ filter }) =>
      !(filter === 'InterPodAffinity' && ignoresAffinity) && filter !== 'VolumeRestrictions',
  );
  const restriction = volumeRestriction(rivals, pendingPod.pod, { without, cluster });
  const all = restriction === undefined ? reasons : [...reasons, restriction];
  return all.length > 0 ? all : without;
}

function whilePlaced<T>(rivals: readonly Pod[], check: Check, work: () => T): T {
  const { pendingPod, nodeInfo, cluster } = check;
  // Terminating nominated pods count for topology spread, and so do all of them for an empty selector.
  const placed = rivals.map((rival) =>
    cluster.newPlacedPod({ ...rival, isTerminating: false }, rival.requests),
  );
  const matching = rivals.filter(({ namespace }) => namespace === pendingPod.pod.namespace).length;
  const uncounted = pendingPod.spreadChecks.filter(({ constraint }) =>
    isEmptySelector(constraint.selector),
  );
  for (const one of placed) cluster.addPod(one, nodeInfo);
  for (const { counter } of uncounted) counter.add(nodeInfo.id, matching);
  try {
    return work();
  } finally {
    for (const { counter } of uncounted) counter.add(nodeInfo.id, -matching);
    for (const one of placed) cluster.removePod(one, nodeInfo);
  }
}

// Then the anti-affinity of nominated pods is ignored too.
function hasNoAffinityToCheck(pendingPod: PendingPod): boolean {
  const { affinityCounters, antiAffinityCounters, labelGroup } = pendingPod;
  return (
    affinityCounters.length === 0 &&
    antiAffinityCounters.length === 0 &&
    labelGroup.rejectingCounters.every(({ total }) => total === 0)
  );
}

interface RestrictionCheck {
  readonly without: readonly FilterReason[];
  readonly cluster: ClusterState;
}

// Without a disk to check and without a claim in use, the filter ignores nominated pods. With a disk, it
// compares their claims by name only, whatever their namespace.
function volumeRestriction(
  rivals: readonly Pod[],
  pod: Pod,
  { without, cluster }: RestrictionCheck,
): FilterReason | undefined {
  const known = without.find(({ filter }) => filter === 'VolumeRestrictions');
  if (known !== undefined) return known;
  const disks = pod.volumes.flatMap((one) => (one.kind === 'disk' ? [one.disk] : []));
  if (!disks.some(isExclusiveDisk)) return undefined;
  const volumes = rivals.flatMap((rival) => rival.volumes);
  const disk = disks.find((one) =>
    volumes.some((other) => other.kind === 'disk' && disksConflict(one, other.disk)),
  );
  if (disk !== undefined) return { filter: 'VolumeRestrictions', problem: 'disk-in-use', disk };
  const names = new Set(volumes.flatMap((one) => (one.kind === 'claim' ? [one.claimName] : [])));
  const claim = exclusiveClaims(pod, cluster).find((name) => names.has(name));
  return claim === undefined
    ? undefined
    : { filter: 'VolumeRestrictions', problem: 'claim-in-use', claim };
}

function exclusiveClaims(pod: Pod, { storage }: ClusterState): readonly string[] {
  return pod.volumes
    .flatMap((one) => (one.kind === 'claim' ? [one.claimName] : []))
    .filter((name) => storage.claim(pod.namespace, name)?.accessModes.includes('ReadWriteOncePod'));
}
