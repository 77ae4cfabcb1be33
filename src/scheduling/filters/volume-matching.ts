// SPDX-License-Identifier: Apache-2.0
// Which volume an unbound claim would get on a node.

import type { Node } from '../../model/node.ts';
import type { PersistentVolume } from '../../model/persistent-volume.ts';
import { podKey } from '../../model/pod.ts';
import { matches } from '../../model/selector.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { Storage } from '../state/storage.ts';
import { reaches } from './volume-reach.ts';

export interface Wanted {
  readonly claim: VolumeClaim;
  readonly node: Node;
  /** Volumes that other claims of the same pod get. */
  readonly chosen: ReadonlySet<string>;
}

/** The one reserved for the claim, else the smallest that is large enough. */
export function findVolume(wanted: Wanted, storage: Storage): PersistentVolume | undefined {
  const { claim, node, chosen } = wanted;
  const usable = storage
    .volumesOfClass(claim.storageClass)
    .filter((volume) => !chosen.has(volume.name) && isUsable(volume, claim));
  const reserved = usable.find((volume) => isReservedFor(volume, claim, storage));
  if (reserved !== undefined) {
    // A volume that waits for this claim elsewhere keeps every other volume from it.
    return reaches(node, reserved.nodeAffinity) ? reserved : undefined;
  }
  return usable
    .filter((volume) => isFree(volume, storage) && isMeant(volume, claim, node))
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

function isReservedFor(volume: PersistentVolume, claim: VolumeClaim, storage: Storage): boolean {
  const promised = storage.promisedTo(volume);
  if (promised !== undefined) return promised === podKey(claim);
  const ref = volume.claimRef;
  if (ref === undefined || ref.name !== claim.name || ref.namespace !== claim.namespace) {
    return false;
  }
  return ref.uid === '' || ref.uid === claim.uid;
}

function isFree(volume: PersistentVolume, storage: Storage): boolean {
  return (
    volume.isAvailable && volume.claimRef === undefined && storage.promisedTo(volume) === undefined
  );
}

function isMeant(volume: PersistentVolume, claim: VolumeClaim, node: Node): boolean {
  return (
    (claim.selector === undefined || matches(claim.selector, volume.labels)) &&
    claim.accessModes.every((mode) => volume.accessModes.includes(mode)) &&
    reaches(node, volume.nodeAffinity)
  );
}
