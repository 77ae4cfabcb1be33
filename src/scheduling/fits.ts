// SPDX-License-Identifier: Apache-2.0
// Would the scheduler put this pod on that node?

import type { Pod } from '../model/pod.ts';
import { allReasons } from './filters/all.ts';
import type { Reason, Verdict } from './reasons.ts';
import { Draft, type Snapshot } from './snapshot.ts';
import { newCandidate } from './state/candidate.ts';
import type { Slot } from './state/slot.ts';
import type { World } from './state/world.ts';

/**
 * Asks every filter and returns everything that stands in the way. Throws for a node that the snapshot does
 * not have: that is a mistake of the caller, not a property of the pod.
 */
export function fits(snapshot: Snapshot, pod: Pod, nodeName: string): Verdict {
  const world = snapshot.enter();
  const slot = world.slot(nodeName);
  if (slot === undefined) throw new RangeError(`no node '${nodeName}' in this snapshot`);
  const reasons = reasonsOn(world, pod, slot);
  const all = reasons.length > 0 ? reasons : reasonsBesideNominated(snapshot, pod, slot);
  return all.length === 0 ? { fits: true } : { fits: false, reasons: all };
}

function reasonsOn(world: World, pod: Pod, slot: Slot): readonly Reason[] {
  return allReasons(newCandidate(pod, world), slot, world);
}

// Room is being made there for pods at least as important: they count as if they were there already. The
// pod must also fit without them, since they may never come.
function reasonsBesideNominated(snapshot: Snapshot, pod: Pod, slot: Slot): readonly Reason[] {
  const rivals = (snapshot.nominated.get(slot.node.name) ?? []).filter(
    (other) => other.priority >= pod.priority && other.uid !== pod.uid,
  );
  if (rivals.length === 0) return [];
  const draft = new Draft(snapshot.enter());
  try {
    for (const rival of rivals) draft.place(draft.world.resident(rival, rival.requests), slot);
    return reasonsOn(draft.world, pod, slot);
  } finally {
    draft.undo();
  }
}
