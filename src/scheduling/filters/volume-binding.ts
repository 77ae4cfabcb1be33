// SPDX-License-Identifier: Apache-2.0
// Whether a pod's claims can be satisfied on a node: bound claims by volumes that the node reaches, unbound
// claims by free volumes or by provisioning.

import type { Node } from '../../model/node.ts';
import { type Pod, podKey } from '../../model/pod.ts';
import { wholeValue } from '../../model/quantity.ts';
import { meetsRequirement } from '../../model/requirement.ts';
import { matchesSelector } from '../../model/selector.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { ClaimProblem, FilterReason } from '../reasons.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { NodeInfo } from '../state/node-info.ts';
import type { PlacedPod, StorageReservation } from '../state/placed-pod.ts';
import type { StorageState } from '../state/storage-state.ts';
import {
  belongsToOtherPod,
  type ClaimVolume,
  claimKey,
  claimVolumes,
  findClaim,
} from './claims.ts';
import type { Filter } from './filter.ts';
import { canReachVolume, effectiveAffinity } from './volume-affinity.ts';
import { findVolume } from './volume-matching.ts';

const NO_PROVISIONER = 'kubernetes.io/no-provisioner';

export const volumeBinding: Filter = ({ pod }, { node }, { storage }) => {
  if (pod.volumes.length === 0) return undefined;
  const plan = planStorage(pod, node, storage);
  return 'filter' in plan ? plan : undefined;
};

/** The pod as placed on the node, with the volumes that it would get reserved. */
export function newPlacedPodOn(nodeInfo: NodeInfo, pod: Pod, cluster: ClusterState): PlacedPod {
  if (pod.volumes.length === 0) return cluster.newPlacedPod(pod, pod.requests);
  const plan = planStorage(pod, nodeInfo.node, cluster.storage);
  return cluster.newPlacedPod(pod, pod.requests, 'filter' in plan ? undefined : plan);
}

/** The volumes that placing the pod would bind and provision, or the reason why it cannot be placed. */
export function planStorage(
  pod: Pod,
  node: Node,
  storage: StorageState,
): StorageReservation | FilterReason {
  const bound: VolumeClaim[] = [];
  const unbound: VolumeClaim[] = [];
  for (const volume of claimVolumes(pod)) {
    const claim = findClaim(pod, volume, storage);
    const problem = claimProblem(pod, volume, storage);
    if (claim === undefined || problem !== undefined) {
      const name = claimKey(pod, volume);
      return { filter: 'VolumeBinding', problem: problem ?? 'claim-not-found', claim: name };
    }
    (isBound(claim) ? bound : unbound).push(claim);
  }
  return findUnreachable(bound, node, storage) ?? planUnbound(unbound, node, storage);
}

function isBound(claim: VolumeClaim): boolean {
  return claim.volumeName !== '' && claim.isBindCompleted;
}

function claimProblem(
  pod: Pod,
  volume: ClaimVolume,
  storage: StorageState,
): ClaimProblem | undefined {
  const claim = findClaim(pod, volume, storage);
  if (claim === undefined) return 'claim-not-found';
  if (claim.isLost) return 'claim-lost';
  if (claim.isTerminating) return 'claim-terminating';
  if (belongsToOtherPod(pod, volume, claim)) return 'claim-of-another-pod';
  return isBound(claim) ? undefined : bindingProblem(claim, storage);
}

// An unbound claim is valid only if its class binds at the first consumer and it names no volume.
function bindingProblem(claim: VolumeClaim, storage: StorageState): ClaimProblem | undefined {
  const storageClass = storage.storageClass(claim.storageClass);
  if (storageClass?.binding === 'unset') return 'class-without-binding-mode';
  const waits = storageClass?.binding === 'first-consumer' && claim.volumeName === '';
  return waits ? undefined : 'claim-unbound';
}

function findUnreachable(
  claims: readonly VolumeClaim[],
  node: Node,
  storage: StorageState,
): FilterReason | undefined {
  for (const claim of claims) {
    const volume = storage.volume(claim.volumeName);
    if (volume === undefined) return bindingReason('volume-not-found', claim);
    const affinity = effectiveAffinity(volume, storage.csiNode(node.name));
    if (!canReachVolume(node, affinity)) return bindingReason('node-conflict', claim);
  }
  return undefined;
}

function planUnbound(
  claims: readonly VolumeClaim[],
  node: Node,
  storage: StorageState,
): StorageReservation | FilterReason {
  const elsewhere = claims.find((claim) => isSelectedElsewhere(claim, node, storage));
  if (elsewhere !== undefined) return bindingReason('other-node-selected', elsewhere);
  const chosen = new Map<string, string>();
  const provisioned: VolumeClaim[] = [];
  for (const claim of claims.toSorted(compareRequests)) {
    const volume =
      storage.selectedNode(claim) === undefined
        ? findVolume({ claim, node, chosen: new Set(chosen.keys()) }, storage)
        : undefined;
    if (volume === undefined) provisioned.push(claim);
    else chosen.set(volume.name, podKey(claim));
  }
  const problem = provisionProblem(provisioned, node, storage);
  return problem ?? { volumes: [...chosen], provisioned: provisioned.map(podKey) };
}

function isSelectedElsewhere(claim: VolumeClaim, node: Node, storage: StorageState): boolean {
  const selected = storage.selectedNode(claim);
  return selected !== undefined && selected !== node.name;
}

// Smallest first, so that a small claim does not lose its only volume to a large one.
function compareRequests(left: VolumeClaim, right: VolumeClaim): number {
  const a = left.requestNano ?? 0n;
  const b = right.requestNano ?? 0n;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function provisionProblem(
  claims: readonly VolumeClaim[],
  node: Node,
  storage: StorageState,
): FilterReason | undefined {
  for (const claim of claims) {
    const storageClass = storage.storageClass(claim.storageClass);
    const provisioner = storageClass?.provisioner ?? '';
    if (storageClass === undefined || provisioner === '' || provisioner === NO_PROVISIONER) {
      return bindingReason('no-volume', claim);
    }
    const terms = storageClass.allowedTopologies;
    const isAllowed = terms.some(
      (term) => term.length > 0 && term.every((one) => meetsRequirement(one, node.labels)),
    );
    if (terms.length > 0 && !isAllowed) return bindingReason('no-volume', claim);
    if (!hasSpace(claim, node, storage)) return bindingReason('no-space', claim);
  }
  return undefined;
}

function hasSpace(claim: VolumeClaim, node: Node, storage: StorageState): boolean {
  const provisioner = storage.storageClass(claim.storageClass)?.provisioner ?? '';
  if (claim.requestNano === undefined || !storage.reportsCapacity(provisioner)) return true;
  const bytes = wholeValue({ nano: claim.requestNano, format: 'BinarySI' });
  return storage.capacities.some(
    ({ storageClass, nodes, largestBytes }) =>
      storageClass === claim.storageClass &&
      largestBytes !== undefined &&
      largestBytes >= bytes &&
      matchesSelector(nodes, node.labels),
  );
}

function bindingReason(
  problem: 'node-conflict' | 'other-node-selected' | 'no-volume' | 'no-space' | 'volume-not-found',
  claim: VolumeClaim,
): FilterReason {
  return { filter: 'VolumeBinding', problem, claim: podKey(claim) };
}
