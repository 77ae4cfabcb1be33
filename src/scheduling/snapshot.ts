// SPDX-License-Identifier: Apache-2.0
// A cluster at one moment, as a value. Forks share one world and remember only what they change; asking a
// snapshot moves the world there by undoing and redoing, which costs the difference and nothing more.

import type { DaemonSet } from '../model/daemon-set.ts';
import type { Labels } from '../model/labels.ts';
import type { Node } from '../model/node.ts';
import type { Pod } from '../model/pod.ts';
import type { Resident } from './state/resident.ts';
import type { Slot } from './state/slot.ts';
import { NO_STORAGE, type StorageObjects } from './state/storage.ts';
import { World } from './state/world.ts';

export interface ClusterObjects {
  readonly nodes: readonly Node[];
  /** Pods that run somewhere, or that a node is kept free for (`nominatedNodeName`). Others are ignored. */
  readonly pods?: readonly Pod[];
  /** Labels of namespaces by name. */
  readonly namespaces?: ReadonlyMap<string, Labels>;
  readonly storage?: Partial<StorageObjects>;
  readonly daemonSets?: readonly DaemonSet[];
}

export type Change =
  | { readonly kind: 'place' | 'displace'; readonly resident: Resident; readonly slot: Slot }
  | { readonly kind: 'add-node' | 'remove-node'; readonly slot: Slot };

export class Snapshot {
  readonly daemonSets: readonly DaemonSet[];
  /** Pods by the node that is kept free for them. */
  readonly nominated: ReadonlyMap<string, readonly Pod[]>;
  readonly #timeline: Timeline;
  readonly #parent: Snapshot | undefined;
  readonly #changes: readonly Change[];
  readonly #depth: number;

  private constructor(
    timeline: Timeline,
    rest: Pick<Snapshot, 'daemonSets' | 'nominated'>,
    from?: { readonly parent: Snapshot; readonly changes: readonly Change[] },
  ) {
    this.#timeline = timeline;
    this.daemonSets = rest.daemonSets;
    this.nominated = rest.nominated;
    this.#parent = from?.parent;
    this.#changes = from?.changes ?? [];
    this.#depth = from === undefined ? 0 : from.parent.#depth + 1;
  }

  static of(objects: ClusterObjects): Snapshot {
    const world = new World(objects.namespaces ?? new Map(), {
      ...NO_STORAGE,
      ...objects.storage,
    });
    for (const node of objects.nodes) world.addNode(world.newSlot(node));
    const living = (objects.pods ?? []).filter((pod) => !pod.isFinished);
    for (const pod of living) {
      const slot = world.slot(pod.nodeName);
      if (slot !== undefined) world.place(world.resident(pod, pod.held), slot);
    }
    const waiting = living.filter((pod) => pod.nodeName === '' && pod.nominatedNodeName !== '');
    const timeline: Timeline = { world, at: undefined };
    const snapshot = new Snapshot(timeline, {
      daemonSets: objects.daemonSets ?? [],
      nominated: Map.groupBy(waiting, (pod) => pod.nominatedNodeName),
    });
    timeline.at = snapshot;
    return snapshot;
  }

  /** The world, moved to this snapshot. Valid until another snapshot of the same cluster is asked. */
  enter(): World {
    const { world, at } = this.#timeline;
    if (at !== undefined && at !== this) Snapshot.#travel(at, this, world);
    this.#timeline.at = this;
    return world;
  }

  static #travel(from: Snapshot, to: Snapshot, world: World): void {
    const redo: Snapshot[] = [];
    let here = from;
    let there = to;
    while (here !== there) {
      if (here.#depth >= there.#depth && here.#parent !== undefined) {
        for (const change of here.#changes.toReversed()) revert(world, change);
        here = here.#parent;
      } else {
        redo.push(there);
        there = there.#parent ?? here;
      }
    }
    for (const snapshot of redo.toReversed()) {
      for (const change of snapshot.#changes) apply(world, change);
    }
  }

  /** A snapshot that differs by what `edit` does. */
  fork(edit: (draft: Draft) => void): Snapshot {
    const world = this.enter();
    const draft = new Draft(world);
    try {
      edit(draft);
    } finally {
      draft.undo();
    }
    return new Snapshot(this.#timeline, this, { parent: this, changes: draft.changes });
  }

  get nodes(): readonly Node[] {
    return this.enter()
      .slots.filter((slot) => slot.isPresent)
      .map((slot) => slot.node);
  }

  podsOn(nodeName: string): readonly Pod[] {
    const slot = this.enter().slot(nodeName);
    return slot === undefined ? [] : [...slot.residents].map((one) => one.pod);
  }
}

interface Timeline {
  readonly world: World;
  at: Snapshot | undefined;
}

/** Changes to a world that are kept in order, so that they can be taken back. */
export class Draft {
  readonly world: World;
  readonly changes: Change[] = [];

  constructor(world: World) {
    this.world = world;
  }

  place(resident: Resident, slot: Slot): void {
    this.#do({ kind: 'place', resident, slot });
  }

  displace(resident: Resident, slot: Slot): void {
    this.#do({ kind: 'displace', resident, slot });
  }

  addNode(node: Node): Slot {
    const slot = this.world.newSlot(node);
    this.#do({ kind: 'add-node', slot });
    return slot;
  }

  /** With everything on it. */
  removeNode(slot: Slot): void {
    for (const resident of slot.residents) this.displace(resident, slot);
    this.#do({ kind: 'remove-node', slot });
  }

  undo(): void {
    for (const change of this.changes.toReversed()) revert(this.world, change);
  }

  #do(change: Change): void {
    apply(this.world, change);
    this.changes.push(change);
  }
}

function apply(world: World, change: Change): void {
  switch (change.kind) {
    case 'place':
      return world.place(change.resident, change.slot);
    case 'displace':
      return world.displace(change.resident, change.slot);
    case 'add-node':
      return world.addNode(change.slot);
    case 'remove-node':
      return world.removeNode(change.slot);
  }
}

function revert(world: World, change: Change): void {
  switch (change.kind) {
    case 'place':
      return world.displace(change.resident, change.slot);
    case 'displace':
      return world.place(change.resident, change.slot);
    case 'add-node':
      return world.removeNode(change.slot);
    case 'remove-node':
      return world.addNode(change.slot);
  }
}
