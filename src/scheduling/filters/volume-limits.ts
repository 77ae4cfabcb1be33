// SPDX-License-Identifier: Apache-2.0
import type { CsiNode } from '../../model/csi.ts';
import type { Pod } from '../../model/pod.ts';
import type { FilterReason } from '../reasons.ts';
import type { NodeInfo } from '../state/node-info.ts';
import type { StorageState } from '../state/storage-state.ts';
import {
  type AttachableVolume,
  attachableOfClaim,
  attachableOfDisk,
  newAttachable,
} from './attachable.ts';
import { belongsToOtherPod, claimKey, findClaim } from './claims.ts';
import type { Filter } from './filter.ts';

export const nodeVolumeLimits: Filter = ({ pod }, nodeInfo, { storage }) => {
  if (pod.volumes.length === 0) return undefined;
  const problem = findBrokenClaim(pod, storage);
  if (problem !== undefined) return problem;
  const csiNode = storage.csiNode(nodeInfo.node.name);
  if (csiNode === undefined || csiNode.limits.size === 0) return undefined;
  const added = new Map(attachableVolumes(pod, storage).map(({ name, driver }) => [name, driver]));
  if (added.size === 0) return undefined;
  const foreign = nodeInfo.placedPods.find((one) => hasForeignClaim(one.pod, storage));
  if (foreign !== undefined) return findForeignClaim(foreign.pod, storage);
  return checkLimits(csiNode, added, attachedVolumes(nodeInfo, storage));
};

function findBrokenClaim(pod: Pod, storage: StorageState): FilterReason | undefined {
  for (const volume of pod.volumes) {
    if (volume.kind === 'disk') continue;
    const claim = findClaim(pod, volume, storage);
    const named = { filter: 'NodeVolumeLimits', claim: claimKey(pod, volume) } as const;
    if (claim === undefined) return { ...named, problem: 'claim-not-found' };
    if (belongsToOtherPod(pod, volume, claim)) return { ...named, problem: 'claim-of-another-pod' };
  }
  return undefined;
}

// As in the scheduler, a node fails if its attached volumes cannot be determined.
function findForeignClaim(pod: Pod, storage: StorageState): FilterReason | undefined {
  for (const volume of pod.volumes) {
    if (volume.kind === 'disk') continue;
    const claim = findClaim(pod, volume, storage);
    if (claim !== undefined && belongsToOtherPod(pod, volume, claim)) {
      return {
        filter: 'NodeVolumeLimits',
        problem: 'claim-of-another-pod',
        claim: claimKey(pod, volume),
      };
    }
  }
  return undefined;
}

function hasForeignClaim(pod: Pod, storage: StorageState): boolean {
  return pod.volumes.length > 0 && findForeignClaim(pod, storage) !== undefined;
}

function attachableVolumes(pod: Pod, storage: StorageState): readonly AttachableVolume[] {
  return pod.volumes.flatMap((volume) => {
    if (volume.kind === 'disk') return attachableOfDisk(volume.disk, {}) ?? [];
    const claim = findClaim(pod, volume, storage);
    return claim === undefined ? [] : (attachableOfClaim(claim, storage) ?? []);
  });
}

/** Volumes of the placed pods, and volumes that are still attached although their pod is gone. */
function attachedVolumes(nodeInfo: NodeInfo, storage: StorageState): ReadonlyMap<string, string> {
  const attached = new Map<string, string>();
  for (const placedPod of nodeInfo.placedPods) {
    for (const { name, driver } of attachableVolumes(placedPod.pod, storage))
      attached.set(name, driver);
  }
  for (const { driver, volumeName } of storage.attachments(nodeInfo.node.name)) {
    const handle = storage.volume(volumeName)?.csi?.handle;
    if (handle === undefined) continue;
    const left = newAttachable(driver, handle);
    if (!attached.has(left.name)) attached.set(`\u0000left ${left.name}`, driver);
  }
  return attached;
}

function checkLimits(
  { limits }: CsiNode,
  added: ReadonlyMap<string, string>,
  attached: ReadonlyMap<string, string>,
): FilterReason | undefined {
  const fresh = [...added].filter(([name]) => !attached.has(name)).map(([, driver]) => driver);
  for (const driver of new Set(fresh)) {
    const limit = limits.get(driver);
    if (limit === undefined) continue;
    const adding = fresh.filter((one) => one === driver).length;
    const there = [...attached.values()].filter((one) => one === driver).length;
    if (there + adding > limit) {
      const numbers = { driver, attached: there, adding, limit };
      return { filter: 'NodeVolumeLimits', problem: 'too-many', ...numbers };
    }
  }
  return undefined;
}
