// SPDX-License-Identifier: Apache-2.0
import { disksConflict, type InTreeDisk } from '../../model/in-tree-disk.ts';
import type { Pod } from '../../model/pod.ts';
import type { FilterReason } from '../reasons.ts';
import type { NodeInfo } from '../state/node-info.ts';
import type { StorageState } from '../state/storage-state.ts';
import { claimKey } from './claims.ts';
import type { Filter } from './filter.ts';

export const volumeRestrictions: Filter = ({ pod }, nodeInfo, { storage }) => {
  if (pod.volumes.length === 0) return undefined;
  return claimConflict(pod, storage) ?? diskConflict(pod, nodeInfo);
};

// A ReadWriteOncePod claim in use rejects every node until its pod is gone.
function claimConflict(pod: Pod, storage: StorageState): FilterReason | undefined {
  for (const volume of pod.volumes) {
    if (volume.kind !== 'claim') continue;
    const claim = storage.claim(pod.namespace, volume.claimName);
    const named = { filter: 'VolumeRestrictions', claim: claimKey(pod, volume) } as const;
    if (claim === undefined) return { ...named, problem: 'claim-not-found' };
    const isExclusive = claim.accessModes.includes('ReadWriteOncePod');
    if (isExclusive && storage.isClaimUsed(claim)) return { ...named, problem: 'claim-in-use' };
  }
  return undefined;
}

function diskConflict(pod: Pod, nodeInfo: NodeInfo): FilterReason | undefined {
  const wanted = disks(pod);
  if (wanted.length === 0) return undefined;
  for (const placedPod of nodeInfo.placedPods) {
    const taken = disks(placedPod.pod);
    const disk = wanted.find((one) => taken.some((other) => disksConflict(one, other)));
    if (disk !== undefined) {
      return { filter: 'VolumeRestrictions', problem: 'disk-in-use', disk };
    }
  }
  return undefined;
}

function disks(pod: Pod): readonly InTreeDisk[] {
  return pod.volumes.flatMap((volume) => (volume.kind === 'disk' ? [volume.disk] : []));
}
