// SPDX-License-Identifier: Apache-2.0
// Which existing volume an unbound claim would get on a node.

import type { Node } from '../../model/node.ts';
import type { PersistentVolume } from '../../model/persistent-volume.ts';
import { podKey } from '../../model/pod.ts';
import { matchesSelector } from '../../model/selector.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { StorageState } from '../state/storage-state.ts';
import { canReachVolume } from './volume-affinity.ts';

export interface VolumeSearch {
  readonly claim: VolumeClaim;
  readonly node: Node;
  /** Volumes already chosen for other claims of the same pod. */
  readonly chosen: ReadonlySet<string>;
}

/** The volume reserved for the claim, otherwise the smallest that is large enough. */
export function findVolume(
  search: VolumeSearch,
  storage: StorageState,
): PersistentVolume | undefined {
  const { claim, node, chosen } = search;
  const usable = storage
    .volumesOfClass(claim.storageClass)
    .filter((volume) => !chosen.has(volume.name) && isUsable(volume, claim));
  const reserved = usable.find((volume) => isReservedFor(volume, claim, storage));
  if (reserved !== undefined) {
    // As in the scheduler, a volume reserved for the claim excludes all others, even if the node cannot reach
    // it.
    return canReachVolume(node, reserved.nodeAffinity) ? reserved : undefined;
  }
  return usable
    .filter((volume) => isFree(volume, storage) && matchesClaim(volume, claim, node))
    .reduce<PersistentVolume | undefined>(smaller, undefined);
}

function smaller(best: PersistentVolume | undefined, other: PersistentVolume): PersistentVolume {
  return best === undefined || other.capacityNano < best.capacityNano ? other : best;
}

function isUsable(volume: PersistentVolume, claim: VolumeClaim): boolean {
  return (
    volume.capacityNano >= (claim.requestNano ?? 0n) &&
    volume.mode === claim.mode &&
    volume.attributesClass === claim.attributesClass &&
    !volume.isTerminating
  );
}

function isReservedFor(
  volume: PersistentVolume,
  claim: VolumeClaim,
  storage: StorageState,
): boolean {
  const reserved = storage.reservedFor(volume);
  if (reserved !== undefined) return reserved === podKey(claim);
  const ref = volume.claimRef;
  if (ref === undefined || ref.name !== claim.name || ref.namespace !== claim.namespace) {
    return false;
  }
  return ref.uid === '' || ref.uid === claim.uid;
}

function isFree(volume: PersistentVolume, storage: StorageState): boolean {
  return (
    volume.isAvailable && volume.claimRef === undefined && storage.reservedFor(volume) === undefined
  );
}

function matchesClaim(volume: PersistentVolume, claim: VolumeClaim, node: Node): boolean {
  return (
    (claim.selector === undefined || matchesSelector(claim.selector, volume.labels)) &&
    claim.accessModes.every((mode) => volume.accessModes.includes(mode)) &&
    canReachVolume(node, volume.nodeAffinity)
  );
}
