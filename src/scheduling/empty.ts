// SPDX-License-Identifier: Apache-2.0
// Can these nodes be emptied? Yes with a place for every pod on them, or no with the pods that have none.

import { isDaemonPod, type Pod } from '../model/pod.ts';
import { allReasons } from './filters/all.ts';
import { groupPods, type PodGroup } from './pack/groups.ts';
import { Placer } from './pack/placer.ts';
import { fillNodes, newWork, unfinished } from './pack/rounds.ts';
import { weigh } from './pack/weights.ts';
import type { Reason } from './reasons.ts';
import { Draft, type Snapshot } from './snapshot.ts';
import type { World } from './state/world.ts';

export interface EmptyOptions {
  /** Pods of a lower priority may be lost. */
  readonly expendableBelow?: number;
  /** Nodes that nothing is to be moved to, such as others that are about to go. */
  readonly avoid?: ReadonlySet<string>;
}

export interface Move {
  readonly pod: Pod;
  readonly from: string;
  readonly to: string;
}

export interface Stuck {
  readonly pod: Pod;
  readonly from: string;
  /** For every node that was asked, what speaks against it. */
  readonly nodes: readonly { readonly node: string; readonly reasons: readonly Reason[] }[];
}

export type Emptying =
  | { readonly isPossible: true; readonly moves: readonly Move[] }
  | {
      readonly isPossible: false;
      readonly stuck: readonly Stuck[];
      /** Where the others would go. */
      readonly moves: readonly Move[];
    };

export function canEmpty(
  snapshot: Snapshot,
  nodeNames: readonly string[],
  options: EmptyOptions = {},
): Emptying {
  const draft = new Draft(snapshot.enter());
  try {
    const homes = clear(draft, nodeNames, options);
    return rehouse(draft, homes, options.avoid ?? new Set());
  } finally {
    draft.undo();
  }
}

/** Takes the nodes away and returns the pods that need another place, with the one they had. */
function clear(
  draft: Draft,
  nodeNames: readonly string[],
  options: EmptyOptions,
): ReadonlyMap<Pod, string> {
  const homes = new Map<Pod, string>();
  for (const name of nodeNames) {
    const slot = draft.world.slot(name);
    if (slot === undefined) throw new RangeError(`no node '${name}' in this snapshot`);
    for (const { pod } of slot.residents) {
      if (needsAnotherPlace(pod, options)) homes.set(asNew(pod), name);
    }
    draft.removeNode(slot);
  }
  return homes;
}

// Daemons and static pods belong to the node; who is going anyway needs no place.
function needsAnotherPlace(pod: Pod, { expendableBelow }: EmptyOptions): boolean {
  if (isDaemonPod(pod) || pod.isMirror || pod.isTerminating) return false;
  return expendableBelow === undefined || pod.priority >= expendableBelow;
}

function asNew(pod: Pod): Pod {
  return { ...pod, nodeName: '', nominatedNodeName: '' };
}

function rehouse(
  draft: Draft,
  homes: ReadonlyMap<Pod, string>,
  avoid: ReadonlySet<string>,
): Emptying {
  const { world } = draft;
  const weights = weigh([...homes.keys()], []);
  const placer = new Placer(draft, weights);
  for (const slot of world.slots) {
    if (slot.isPresent && !avoid.has(slot.node.name)) placer.addNode(slot);
  }
  const work = newWork(groupPods([...homes.keys()], world, weights));
  fillNodes(work, placer);
  const stuck = unfinished(work).flatMap(({ group, placed }) =>
    explain(group, placed, { world, homes, avoid }),
  );
  const moves = placer.placements.map(({ pod, bin }) => ({
    pod,
    from: homes.get(pod) ?? '',
    to: bin.slot.node.name,
  }));
  return stuck.length === 0 ? { isPossible: true, moves } : { isPossible: false, stuck, moves };
}

function explain(
  group: PodGroup,
  placed: number,
  context: {
    readonly world: World;
    readonly homes: ReadonlyMap<Pod, string>;
    readonly avoid: ReadonlySet<string>;
  },
): readonly Stuck[] {
  const { world, homes, avoid } = context;
  const nodes = world.slots
    .filter((slot) => slot.isPresent && !avoid.has(slot.node.name))
    .map((slot) => ({
      node: slot.node.name,
      reasons: allReasons(group.candidate, slot, world),
    }));
  return group.pods.slice(placed).map((pod) => ({ pod, from: homes.get(pod) ?? '', nodes }));
}
