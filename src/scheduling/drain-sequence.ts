// SPDX-License-Identifier: Apache-2.0
// Simulates draining nodes one after the other: each drain sees the cluster after those that succeeded before it, with
// the drained nodes still in it. Nothing is copied between them, so that a thousand nodes cost as much as the pods that
// are moved.

import type { Node } from '../model/node.ts';
import { type Pod, sortForEviction } from '../model/pod.ts';
import { DrainSearch } from './drain-search.ts';
import { emptyNode, type PodMove, podsToMove } from './drain-simulation.ts';
import { type ChooseTied, DrainTargets } from './drain-targets.ts';
import { Draft, type Snapshot } from './snapshot.ts';
import type { NodeInfo } from './state/node-info.ts';
import type { MovingPod } from './state/placed-pod.ts';

export interface DrainSequenceOptions {
  /** Pods of lower priority may be deleted without a replacement. */
  readonly expendableBelow?: number | undefined;
  /** Nodes that must not get pods. The caller may add to it between two drains. */
  readonly avoid: ReadonlySet<string>;
  /** How many other combinations are checked when placing pod by pod fails. Absent: the default. */
  readonly maxChecks?: number | undefined;
  /** Places the pods where kube-scheduler would, instead of searching for places. */
  readonly asScheduled?: boolean | undefined;
  /** Of nodes that kube-scheduler prefers equally. Absent: the first. */
  readonly chooseTied?: ChooseTied | undefined;
}

export interface DrainAttempt {
  readonly isPossible: boolean;
  readonly moves: readonly PodMove[];
  /** Pods without a place. */
  readonly left: readonly Pod[];
}

/** Drains a node, and keeps the result for later drains if it is possible. */
export type TryDrain = (nodeName: string) => DrainAttempt;

export function simulateDrains<T>(
  snapshot: Snapshot,
  options: DrainSequenceOptions,
  work: (tryDrain: TryDrain) => T,
): T {
  const sequence = new DrainSequence(snapshot, options);
  try {
    return work((name) => sequence.tryDrain(name));
  } finally {
    sequence.undo();
  }
}

class DrainSequence {
  readonly #snapshot: Snapshot;
  readonly #options: DrainSequenceOptions;
  readonly #draft: Draft;
  readonly #targets: DrainTargets;
  readonly #drained = new Set<NodeInfo>();

  constructor(snapshot: Snapshot, options: DrainSequenceOptions) {
    this.#snapshot = snapshot;
    this.#options = options;
    const cluster = snapshot.activate();
    this.#draft = new Draft(cluster);
    this.#targets = DrainTargets.of(cluster);
  }

  undo(): void {
    this.#draft.undo();
    for (const nodeInfo of this.#drained) this.#targets.open(nodeInfo);
  }

  tryDrain(nodeName: string): DrainAttempt {
    const nodeInfo = this.#draft.cluster.nodeInfo(nodeName);
    if (nodeInfo === undefined) throw new RangeError(`node '${nodeName}' is not in this snapshot`);
    const mark = this.#draft.changes.length;
    const moving = podsToMove(nodeInfo, {
      targets: this.#targets,
      nominated: this.#snapshot.nominated,
      expendableBelow: this.#options.expendableBelow,
    });
    emptyNode(this.#draft, nodeInfo);
    this.#targets.close(nodeInfo);
    this.#drained.add(nodeInfo);
    const moves = this.#place(moving, nodeInfo.node);
    if (moves.length === moving.length) return { isPossible: true, moves, left: [] };
    this.#draft.undoTo(mark);
    this.#targets.open(nodeInfo);
    const placed = new Set(moves.map(({ pod }) => pod));
    const left = moving.filter(({ pendingPod }) => !placed.has(pendingPod.pod));
    return { isPossible: false, moves, left: left.map(({ pendingPod }) => pendingPod.pod) };
  }

  #place(moving: readonly MovingPod[], { name: from, allocatable }: Node): readonly PodMove[] {
    if (moving.length === 0) return [];
    const search = new DrainSearch(this.#draft, this.#targets, {
      avoid: this.#options.avoid,
      nominated: this.#snapshot.nominated,
      maxChecks: this.#options.maxChecks,
      chooseTied: this.#options.chooseTied,
    });
    const moves =
      this.#options.asScheduled === true
        ? search.placeAsScheduled(
            sortForEviction(moving, allocatable, ({ pendingPod }) => pendingPod.pod),
          )
        : search.place(moving);
    return moves.map(({ moving: one, nodeInfo }) => ({
      pod: one.pendingPod.pod,
      from,
      to: nodeInfo.node.name,
    }));
  }
}
