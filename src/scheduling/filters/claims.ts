// SPDX-License-Identifier: Apache-2.0
// The claims behind a pod's volumes.

import { type Pod, podKey } from '../../model/pod.ts';
import type { PodVolume } from '../../model/pod-volume.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { Storage } from '../state/storage.ts';

export type ClaimVolume = Exclude<PodVolume, { readonly kind: 'disk' }>;

export function claimVolumes(pod: Pod): readonly ClaimVolume[] {
  return pod.volumes.filter((volume) => volume.kind !== 'disk');
}

export function claimOf(pod: Pod, volume: ClaimVolume, storage: Storage): VolumeClaim | undefined {
  return storage.claim(pod.namespace, volume.claimName);
}

/** A claim for an ephemeral volume must have been made for this very pod. */
export function isForeign(pod: Pod, volume: ClaimVolume, claim: VolumeClaim): boolean {
  return volume.kind === 'ephemeral' && (claim.ownerUid === '' || claim.ownerUid !== pod.uid);
}

export function claimName(pod: Pod, volume: ClaimVolume): string {
  return podKey({ namespace: pod.namespace, name: volume.claimName });
}
