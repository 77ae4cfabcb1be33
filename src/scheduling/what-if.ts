// SPDX-License-Identifier: Apache-2.0
// Snapshots that differ from another by one thing. They cost what they change, and can be built on.

import type { Node } from '../model/node.ts';
import type { Pod } from '../model/pod.ts';
import { planStorage } from './filters/volume-binding.ts';
import type { Snapshot } from './snapshot.ts';
import type { Slot } from './state/slot.ts';
import type { World } from './state/world.ts';

/** With a pod placed, whether it fits or not; volumes that it would get are no longer free. */
export function withPod(snapshot: Snapshot, pod: Pod, nodeName: string): Snapshot {
  return snapshot.fork((draft) => {
    const { world } = draft;
    const slot = slotOf(world, nodeName);
    const plan = planStorage(pod, slot.node, world.storage);
    const promise = 'filter' in plan ? undefined : plan;
    draft.place(world.resident({ ...pod, nodeName }, pod.requests, promise), slot);
  });
}

/** Without a pod, known by its namespace and name. */
export function withoutPod(snapshot: Snapshot, pod: Pod, nodeName: string): Snapshot {
  return snapshot.fork((draft) => {
    const slot = slotOf(draft.world, nodeName);
    for (const resident of slot.residents) {
      const isSame = resident.pod.name === pod.name && resident.pod.namespace === pod.namespace;
      if (isSame) draft.displace(resident, slot);
    }
  });
}

export function withNodes(snapshot: Snapshot, nodes: readonly Node[]): Snapshot {
  return snapshot.fork((draft) => {
    for (const node of nodes) draft.addNode(node);
  });
}

/** Without nodes and everything on them. */
export function withoutNodes(snapshot: Snapshot, names: readonly string[]): Snapshot {
  return snapshot.fork((draft) => {
    for (const name of names) draft.removeNode(slotOf(draft.world, name));
  });
}

function slotOf(world: World, name: string): Slot {
  const slot = world.slot(name);
  if (slot === undefined) throw new RangeError(`no node '${name}' in this snapshot`);
  return slot;
}
