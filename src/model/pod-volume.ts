// SPDX-License-Identifier: Apache-2.0
// The pod volumes that affect where the pod can run: claims, and disks named in the pod itself.

import { type InTreeDisk, type InTreeDiskSource, readInTreeDisk } from './in-tree-disk.ts';

export type PodVolume =
  | { readonly kind: 'claim'; readonly claimName: string }
  /** A claim that was created for this pod and is owned by it. */
  | { readonly kind: 'ephemeral'; readonly claimName: string }
  | { readonly kind: 'disk'; readonly disk: InTreeDisk };

/** A volume of a Pod object of the Kubernetes API. */
export interface PodVolumeSource extends InTreeDiskSource {
  readonly name: string;
  readonly persistentVolumeClaim?: { readonly claimName?: string | null } | null;
  readonly ephemeral?: unknown;
  readonly hostPath?: unknown;
  readonly emptyDir?: { readonly medium?: string | null } | null;
}

/** Returns undefined for a volume that every node supports, such as a ConfigMap or an emptyDir. */
export function readPodVolume(source: PodVolumeSource, podName: string): PodVolume | undefined {
  const claim = source.persistentVolumeClaim;
  if (claim !== null && claim !== undefined) {
    return { kind: 'claim', claimName: claim.claimName ?? '' };
  }
  if (source.ephemeral !== null && source.ephemeral !== undefined) {
    return { kind: 'ephemeral', claimName: `${podName}-${source.name}` };
  }
  const disk = readInTreeDisk(source);
  return disk === undefined ? undefined : { kind: 'disk', disk };
}

/** Whether its data is on the disk of the node, and lost with it. An emptyDir in memory is not. */
export function isLocalVolume({ hostPath, emptyDir }: PodVolumeSource): boolean {
  if (hostPath !== null && hostPath !== undefined) return true;
  return emptyDir !== null && emptyDir !== undefined && emptyDir.medium !== 'Memory';
}
