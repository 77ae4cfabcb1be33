// SPDX-License-Identifier: Apache-2.0
// Whether a pod's claims can be satisfied on a node: bound ones by volumes that the node reaches, others by
// free volumes or by making new ones there.

import type { Node } from '../../model/node.ts';
import { type Pod, podKey } from '../../model/pod.ts';
import { wholeValue } from '../../model/quantity.ts';
import { meets } from '../../model/requirement.ts';
import { matches } from '../../model/selector.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { ClaimProblem, Reason } from '../reasons.ts';
import type { StoragePromise } from '../state/resident.ts';
import type { Storage } from '../state/storage.ts';
import { type ClaimVolume, claimName, claimOf, claimVolumes, isForeign } from './claims.ts';
import type { Filter } from './filter.ts';
import { findVolume } from './volume-matching.ts';
import { affinityOn, reaches } from './volume-reach.ts';

const NO_PROVISIONER = 'kubernetes.io/no-provisioner';

export const volumeBinding: Filter = ({ pod }, { node }, { storage }) => {
  if (pod.volumes.length === 0) return undefined;
  const plan = planStorage(pod, node, storage);
  return 'filter' in plan ? plan : undefined;
};

/** What placing the pod on the node would bind and provision, or why it cannot. */
export function planStorage(pod: Pod, node: Node, storage: Storage): StoragePromise | Reason {
  const bound: VolumeClaim[] = [];
  const unbound: VolumeClaim[] = [];
  for (const volume of claimVolumes(pod)) {
    const claim = claimOf(pod, volume, storage);
    const problem = claimProblem(pod, volume, storage);
    if (claim === undefined || problem !== undefined) {
      const name = claimName(pod, volume);
      return { filter: 'VolumeBinding', problem: problem ?? 'claim-not-found', claim: name };
    }
    (isBound(claim) ? bound : unbound).push(claim);
  }
  return unreachable(bound, node, storage) ?? promise(unbound, node, storage);
}

function isBound(claim: VolumeClaim): boolean {
  return claim.volumeName !== '' && claim.isBindCompleted;
}

function claimProblem(pod: Pod, volume: ClaimVolume, storage: Storage): ClaimProblem | undefined {
  const claim = claimOf(pod, volume, storage);
  if (claim === undefined) return 'claim-not-found';
  if (claim.isLost) return 'claim-lost';
  if (claim.isTerminating) return 'claim-terminating';
  if (isForeign(pod, volume, claim)) return 'claim-of-another-pod';
  return isBound(claim) ? undefined : bindingProblem(claim, storage);
}

// Only a claim of a class that waits for its first pod may still be unbound, and only if it names no volume.
function bindingProblem(claim: VolumeClaim, storage: Storage): ClaimProblem | undefined {
  const storageClass = storage.storageClass(claim.storageClass);
  if (storageClass?.binding === 'unset') return 'class-without-binding-mode';
  const waits = storageClass?.binding === 'first-consumer' && claim.volumeName === '';
  return waits ? undefined : 'claim-unbound';
}

function unreachable(
  claims: readonly VolumeClaim[],
  node: Node,
  storage: Storage,
): Reason | undefined {
  for (const claim of claims) {
    const volume = storage.volume(claim.volumeName);
    if (volume === undefined) return rejected('volume-not-found', claim);
    const affinity = affinityOn(volume, storage.csiNode(node.name));
    if (!reaches(node, affinity)) return rejected('node-conflict', claim);
  }
  return undefined;
}

function promise(
  claims: readonly VolumeClaim[],
  node: Node,
  storage: Storage,
): StoragePromise | Reason {
  const elsewhere = claims.find((claim) => isSelectedElsewhere(claim, node, storage));
  if (elsewhere !== undefined) return rejected('other-node-selected', elsewhere);
  const chosen = new Map<string, string>();
  const provisioned: VolumeClaim[] = [];
  for (const claim of claims.toSorted(bySize)) {
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

function isSelectedElsewhere(claim: VolumeClaim, node: Node, storage: Storage): boolean {
  const selected = storage.selectedNode(claim);
  return selected !== undefined && selected !== node.name;
}

// The small ones first: a large claim must not take a volume that is the only one for a small one.
function bySize(left: VolumeClaim, right: VolumeClaim): number {
  const a = left.requestNano ?? 0n;
  const b = right.requestNano ?? 0n;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function provisionProblem(
  claims: readonly VolumeClaim[],
  node: Node,
  storage: Storage,
): Reason | undefined {
  for (const claim of claims) {
    const storageClass = storage.storageClass(claim.storageClass);
    const provisioner = storageClass?.provisioner ?? '';
    if (storageClass === undefined || provisioner === '' || provisioner === NO_PROVISIONER) {
      return rejected('no-volume', claim);
    }
    const terms = storageClass.allowedTopologies;
    const isAllowed = terms.some(
      (term) => term.length > 0 && term.every((one) => meets(one, node.labels)),
    );
    if (terms.length > 0 && !isAllowed) return rejected('no-volume', claim);
    if (!hasSpace(claim, node, storage)) return rejected('no-space', claim);
  }
  return undefined;
}

function hasSpace(claim: VolumeClaim, node: Node, storage: Storage): boolean {
  const provisioner = storage.storageClass(claim.storageClass)?.provisioner ?? '';
  if (claim.requestNano === undefined || !storage.reportsCapacity(provisioner)) return true;
  const bytes = wholeValue({ nano: claim.requestNano, format: 'BinarySI' });
  return storage.capacities.some(
    ({ storageClass, nodes, largestBytes }) =>
      storageClass === claim.storageClass &&
      largestBytes !== undefined &&
      largestBytes >= bytes &&
      matches(nodes, node.labels),
  );
}

function rejected(
  problem: 'node-conflict' | 'other-node-selected' | 'no-volume' | 'no-space' | 'volume-not-found',
  claim: VolumeClaim,
): Reason {
  return { filter: 'VolumeBinding', problem, claim: podKey(claim) };
}
