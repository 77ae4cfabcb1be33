// SPDX-License-Identifier: Apache-2.0
// The volumes of a pod that can matter to where it runs: claims, and disks named in the pod itself.

import { type InTreeDisk, type InTreeDiskSource, inTreeDisk } from './in-tree-disk.ts';

export type PodVolume =
  | { readonly kind: 'claim'; readonly claimName: string }
  /** A claim made for this pod and owned by it. */
  | { readonly kind: 'ephemeral'; readonly claimName: string }
  | { readonly kind: 'disk'; readonly disk: InTreeDisk };

/** A pod's volume as it comes from the Kubernetes API. */
export interface PodVolumeSource extends InTreeDiskSource {
  readonly name: string;
  readonly persistentVolumeClaim?: { readonly claimName?: string | null } | null;
  readonly ephemeral?: unknown;
}

/** Undefined for a volume that any node can offer (a ConfigMap, an empty directory). */
export function podVolume(source: PodVolumeSource, podName: string): PodVolume | undefined {
  const claim = source.persistentVolumeClaim;
  if (claim !== null && claim !== undefined) {
    return { kind: 'claim', claimName: claim.claimName ?? '' };
  }
  if (source.ephemeral !== null && source.ephemeral !== undefined) {
    return { kind: 'ephemeral', claimName: `${podName}-${source.name}` };
  }
  const disk = inTreeDisk(source);
  return disk === undefined ? undefined : { kind: 'disk', disk };
}
