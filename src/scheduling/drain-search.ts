// SPDX-License-Identifier: Apache-2.0
// Finds a node for every pod of drained nodes. First pod by pod, each on the node with the least space left
// over. If that leaves pods without a node, a search with a limited number of steps tries other combinations:
// in a small cluster all of them.

import type { DrainTargets, TargetOptions } from './drain-targets.ts';
import type { Draft } from './snapshot.ts';
import type { NodeInfo } from './state/node-info.ts';
import type { MovingPod } from './state/placed-pod.ts';

export interface Move {
  readonly moving: MovingPod;
  readonly nodeInfo: NodeInfo;
}

/** How many nodes the search tries for a pod, and how many placements it checks in all. */
const MAX_CANDIDATES = 32;
const MAX_CHECKS = 2000;

export class DrainSearch {
  readonly #draft: Draft;
  readonly #targets: DrainTargets;
  readonly #options: TargetOptions;
  readonly #maxChecks: number;
  #checks = 0;

  constructor(
    draft: Draft,
    targets: DrainTargets,
    options: TargetOptions & { readonly maxChecks?: number | undefined },
  ) {
    this.#draft = draft;
    this.#targets = targets;
    this.#options = options;
    this.#maxChecks = options.maxChecks ?? MAX_CHECKS;
  }

  /** Where the pods are placed. Some of them may be missing. The placements stay in the draft. */
  place(pods: readonly MovingPod[]): readonly Move[] {
    const start = this.#draft.changes.length;
    const sorted = sortPods(pods);
    const moves = this.#placeOneByOne(sorted);
    if (moves.length === pods.length || this.#maxChecks === 0) return moves;
    this.#draft.undoTo(start);
    const found = this.#search(sorted);
    if (found !== undefined) return found;
    this.#draft.undoTo(start);
    for (const move of moves) this.#place(move);
    return moves;
  }

  /** Places the pods in this order, each where kube-scheduler would. Some of them may be missing. */
  placeAsScheduled(pods: readonly MovingPod[]): readonly Move[] {
    return pods.flatMap((moving) => {
      const nodeInfo = this.#targets.preferred(moving, this.#options);
      return nodeInfo === undefined ? [] : [this.#place({ moving, nodeInfo })];
    });
  }

  // A placement may make another pod placeable, and that one may make others placeable.
  #placeOneByOne(pods: readonly MovingPod[]): readonly Move[] {
    const moves: Move[] = [];
    let waiting = pods;
    let before: number;
    do {
      before = waiting.length;
      waiting = waiting.filter((moving) => {
        const nodeInfo = this.#targets.tightest(moving, this.#options);
        if (nodeInfo !== undefined) moves.push(this.#place({ moving, nodeInfo }));
        return nodeInfo === undefined;
      });
    } while (waiting.length > 0 && waiting.length < before);
    return moves;
  }

  #place(move: Move): Move {
    const { moving, nodeInfo } = move;
    this.#draft.addPod(this.#targets.placedPod(moving, nodeInfo), nodeInfo);
    return move;
  }

  #search(pods: readonly MovingPod[]): readonly Move[] | undefined {
    const choices: Choice[] = [];
    for (const moving of pods) {
      const nodes = this.#targets.candidates(moving, MAX_CANDIDATES, this.#options);
      if (nodes.length === 0) return undefined;
      choices.push({ moving, nodes });
    }
    choices.sort((a, b) => a.nodes.length - b.nodes.length);
    const moves: Move[] = [];
    return this.#placeAll(choices, moves) ? moves : undefined;
  }

  /**
   * Places the pods after the first `moves.length`, which are placed. Tries them in other orders too when the order
   * decides where pods with affinity or topology spread fit.
   */
  #placeAll(choices: Choice[], moves: Move[]): boolean {
    const start = moves.length;
    if (start === choices.length) return true;
    let mayReorder: boolean | undefined;
    for (let next = start; next < choices.length; next += 1) {
      if (next > start) mayReorder ??= choices.some((one, i) => i >= start && dependsOnOthers(one));
      if (mayReorder === false) return false;
      const choice = moveItem(choices, next, start);
      for (const nodeInfo of choice.nodes) {
        if (this.#checks >= this.#maxChecks) return false;
        this.#checks += 1;
        if (!this.#targets.accepts(choice.moving, nodeInfo, this.#options)) continue;
        const mark = this.#draft.changes.length;
        moves.push(this.#place({ moving: choice.moving, nodeInfo }));
        if (this.#placeAll(choices, moves)) return true;
        moves.pop();
        this.#draft.undoTo(mark);
      }
      moveItem(choices, start, next);
    }
    return false;
  }
}

interface Choice {
  readonly moving: MovingPod;
  readonly nodes: readonly NodeInfo[];
}

/** Whether a pod placed elsewhere may make a node acceptable that is not. */
function dependsOnOthers({ moving: { pendingPod } }: Choice): boolean {
  return pendingPod.affinityCounters.length > 0 || pendingPod.spreadChecks.length > 0;
}

/** Moves an item of the list to another position and returns it. The others keep their order. */
function moveItem(choices: Choice[], from: number, to: number): Choice {
  const choice = choices[from];
  if (choice === undefined) throw new RangeError(`no item ${from} in the list`);
  if (from > to) choices.copyWithin(to + 1, to, from);
  else choices.copyWithin(from, from + 1, to + 1);
  choices[to] = choice;
  return choice;
}

/** Restricted pods first, then large ones, so that the others fill the gaps. */
function sortPods(pods: readonly MovingPod[]): readonly MovingPod[] {
  const ranked = pods.map((moving) => ({ moving, rank: restriction(moving) }));
  ranked.sort(
    (a, b) =>
      a.rank - b.rank ||
      b.moving.cpuMilli - a.moving.cpuMilli ||
      b.moving.memoryBytes - a.moving.memoryBytes ||
      comparePods(a.moving, b.moving),
  );
  return ranked.map(({ moving }) => moving);
}

function restriction({ pendingPod }: MovingPod): number {
  const { pod, antiAffinityCounters, affinityCounters, spreadChecks } = pendingPod;
  if (pod.nodeAffinity !== undefined || Object.keys(pod.nodeSelector).length > 0) return 0;
  if (antiAffinityCounters.length > 0) return 1;
  if (pod.hostPorts.length > 0 || pod.volumes.length > 0) return 2;
  if (affinityCounters.length > 0) return 3;
  return spreadChecks.length > 0 ? 4 : 5;
}

// By name, so that the result does not depend on the order in which pods were read.
function comparePods({ pendingPod: a }: MovingPod, { pendingPod: b }: MovingPod): number {
  if (a.pod.namespace !== b.pod.namespace) return a.pod.namespace < b.pod.namespace ? -1 : 1;
  return a.pod.name < b.pod.name ? -1 : 1;
}
