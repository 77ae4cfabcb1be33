// SPDX-License-Identifier: Apache-2.0
import type { CsiNode } from '../../model/csi.ts';
import type { Pod } from '../../model/pod.ts';
import type { Reason } from '../reasons.ts';
import type { Slot } from '../state/slot.ts';
import type { Storage } from '../state/storage.ts';
import { type Attachable, attachable, attachableDisk, attachableOfClaim } from './attachable.ts';
import { claimName, claimOf, isForeign } from './claims.ts';
import type { Filter } from './filter.ts';

export const nodeVolumeLimits: Filter = ({ pod }, slot, { storage }) => {
  if (pod.volumes.length === 0) return undefined;
  const problem = brokenClaim(pod, storage);
  if (problem !== undefined) return problem;
  const csiNode = storage.csiNode(slot.node.name);
  if (csiNode === undefined || csiNode.limits.size === 0) return undefined;
  const added = new Map(ofPod(pod, storage).map(({ name, driver }) => [name, driver]));
  if (added.size === 0) return undefined;
  const foreign = [...slot.residents].find((one) => hasForeignClaim(one.pod, storage));
  if (foreign !== undefined) return foreignClaim(foreign.pod, storage);
  return judge(csiNode, added, attachedTo(slot, storage));
};

function brokenClaim(pod: Pod, storage: Storage): Reason | undefined {
  for (const volume of pod.volumes) {
    if (volume.kind === 'disk') continue;
    const claim = claimOf(pod, volume, storage);
    const named = { filter: 'NodeVolumeLimits', claim: claimName(pod, volume) } as const;
    if (claim === undefined) return { ...named, problem: 'claim-not-found' };
    if (isForeign(pod, volume, claim)) return { ...named, problem: 'claim-of-another-pod' };
  }
  return undefined;
}

// The scheduler gives up on a node where it cannot tell what is attached.
function foreignClaim(pod: Pod, storage: Storage): Reason | undefined {
  for (const volume of pod.volumes) {
    if (volume.kind === 'disk') continue;
    const claim = claimOf(pod, volume, storage);
    if (claim !== undefined && isForeign(pod, volume, claim)) {
      return {
        filter: 'NodeVolumeLimits',
        problem: 'claim-of-another-pod',
        claim: claimName(pod, volume),
      };
    }
  }
  return undefined;
}

function hasForeignClaim(pod: Pod, storage: Storage): boolean {
  return pod.volumes.length > 0 && foreignClaim(pod, storage) !== undefined;
}

function ofPod(pod: Pod, storage: Storage): readonly Attachable[] {
  return pod.volumes.flatMap((volume) => {
    if (volume.kind === 'disk') return attachableDisk(volume.disk, {}) ?? [];
    const claim = claimOf(pod, volume, storage);
    return claim === undefined ? [] : (attachableOfClaim(claim, storage) ?? []);
  });
}

/** Volumes of the pods that are there, and what is still attached although its pod is gone. */
function attachedTo(slot: Slot, storage: Storage): ReadonlyMap<string, string> {
  const attached = new Map<string, string>();
  for (const resident of slot.residents) {
    for (const { name, driver } of ofPod(resident.pod, storage)) attached.set(name, driver);
  }
  for (const { driver, volumeName } of storage.attachments(slot.node.name)) {
    const handle = storage.volume(volumeName)?.csi?.handle;
    if (handle === undefined) continue;
    const left = attachable(driver, handle);
    if (!attached.has(left.name)) attached.set(`\u0000left ${left.name}`, driver);
  }
  return attached;
}

function judge(
  { limits }: CsiNode,
  added: ReadonlyMap<string, string>,
  attached: ReadonlyMap<string, string>,
): Reason | undefined {
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
