// SPDX-License-Identifier: Apache-2.0
// Finds the claims of a pod's volumes.

import { type Pod, podKey } from '../../model/pod.ts';
import type { PodVolume } from '../../model/pod-volume.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { StorageState } from '../state/storage-state.ts';

export type ClaimVolume = Exclude<PodVolume, { readonly kind: 'disk' }>;

export function claimVolumes(pod: Pod): readonly ClaimVolume[] {
  return pod.volumes.filter((volume) => volume.kind !== 'disk');
}

export function findClaim(
  pod: Pod,
  volume: ClaimVolume,
  storage: StorageState,
): VolumeClaim | undefined {
  return storage.claim(pod.namespace, volume.claimName);
}

/** The claim of an ephemeral volume must be owned by the pod. */
export function belongsToOtherPod(pod: Pod, volume: ClaimVolume, claim: VolumeClaim): boolean {
  return volume.kind === 'ephemeral' && (claim.ownerUid === '' || claim.ownerUid !== pod.uid);
}

export function claimKey(pod: Pod, volume: ClaimVolume): string {
  return podKey({ namespace: pod.namespace, name: volume.claimName });
}
