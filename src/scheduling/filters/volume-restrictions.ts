// SPDX-License-Identifier: Apache-2.0
import { disksCollide, type InTreeDisk } from '../../model/in-tree-disk.ts';
import type { Pod } from '../../model/pod.ts';
import type { Reason } from '../reasons.ts';
import type { Slot } from '../state/slot.ts';
import type { Storage } from '../state/storage.ts';
import type { Filter } from './filter.ts';

export const volumeRestrictions: Filter = ({ pod }, slot, { storage }) => {
  if (pod.volumes.length === 0) return undefined;
  return claimConflict(pod, storage) ?? diskConflict(pod, slot);
};

// A claim for one pod only is taken wherever its pod runs: no node will do until that pod is gone.
function claimConflict(pod: Pod, storage: Storage): Reason | undefined {
  for (const volume of pod.volumes) {
    if (volume.kind !== 'claim') continue;
    const claim = storage.claim(pod.namespace, volume.claimName);
    const named = { filter: 'VolumeRestrictions', claim: volume.claimName } as const;
    if (claim === undefined) return { ...named, problem: 'claim-not-found' };
    const isExclusive = claim.accessModes.includes('ReadWriteOncePod');
    if (isExclusive && storage.isClaimUsed(claim)) return { ...named, problem: 'claim-in-use' };
  }
  return undefined;
}

function diskConflict(pod: Pod, slot: Slot): Reason | undefined {
  const wanted = disks(pod);
  if (wanted.length === 0) return undefined;
  for (const resident of slot.residents) {
    const taken = disks(resident.pod);
    const disk = wanted.find((one) => taken.some((other) => disksCollide(one, other)));
    if (disk !== undefined) {
      return { filter: 'VolumeRestrictions', problem: 'disk-in-use', disk };
    }
  }
  return undefined;
}

function disks(pod: Pod): readonly InTreeDisk[] {
  return pod.volumes.flatMap((volume) => (volume.kind === 'disk' ? [volume.disk] : []));
}
