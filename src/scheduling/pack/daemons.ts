// SPDX-License-Identifier: Apache-2.0
// What DaemonSets bring to a new machine. Their controller makes a pod for every node that selectors and
// taints allow, but the scheduler judges it like any other: one that a neighbour refuses, or that finds its
// port taken or its company missing, waits. Nobody else may reckon with it then. Only its room is kept, as
// long as others have a choice: it comes the moment what refuses it is gone, and no machine is made for it.

import type { Pod } from '../../model/pod.ts';
import { isBarred, mustWait } from '../filters/all.ts';
import { planStorage } from '../filters/volume-binding.ts';
import type { Draft } from '../snapshot.ts';
import { type Candidate, newCandidate } from '../state/candidate.ts';
import type { Resident } from '../state/resident.ts';
import type { Slot } from '../state/slot.ts';
import type { World } from '../state/world.ts';
import { isHeld, type Rung } from './ladder.ts';
import { type Load, loadWith, NOTHING } from './load.ts';

export class Daemons {
  readonly #slot: Slot;
  readonly #world: World;
  #waiting: readonly Candidate[];
  #load: Load;
  readonly #models = new Map<Candidate, Resident>();
  constructor(pods: readonly Pod[], slot: Slot, world: World) {
    this.#slot = slot;
    this.#world = world;
    this.#waiting = pods.map((pod) => newCandidate(pod, world));
    this.#load = sum(this.#waiting);
  }

  /** Whether nobody waits. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** What those ask for that wait. */
  get load(): Load {
    return this.#load;
  }

  /** Asks while those are there that the scheduler would let in now. */
  visit<T>(ask: () => T): T {
    if (this.isEmpty) return ask();
    const { admitted } = this.#admit((resident) => this.#world.place(resident, this.#slot));
    try {
      return ask();
    } finally {
      for (const resident of admitted) this.#world.displace(resident, this.#slot);
    }
  }

  /** Brings those that the scheduler would let in now, to stay; the others go on waiting. */
  settle(draft: Draft, size?: Rung): readonly Pod[] {
    const place = (resident: Resident): void => draft.place(resident, this.#slot);
    const { admitted, waiting } = this.#admit(place, size);
    this.#waiting = waiting;
    this.#load = sum(waiting);
    return admitted.map(({ pod }) => pod);
  }

  // One after the other: they may refuse each other.
  #admit(
    place: (resident: Resident) => void,
    size?: Rung,
  ): { readonly admitted: readonly Resident[]; readonly waiting: readonly Candidate[] } {
    const admitted: Resident[] = [];
    const waiting: Candidate[] = [];
    for (const candidate of this.#waiting) {
      if (this.#isRefused(candidate, size)) {
        waiting.push(candidate);
      } else {
        const resident = this.#resident(candidate);
        place(resident);
        admitted.push(resident);
      }
    }
    return { admitted, waiting };
  }

  // Without a size room is no question: the size is yet to be chosen.
  #isRefused(candidate: Candidate, size: Rung | undefined): boolean {
    const isTooLarge =
      size !== undefined && !isHeld(loadWith(candidate.demand, this.#slot.used), size.holds);
    return (
      isTooLarge ||
      isBarred(candidate, this.#slot, this.#world) ||
      mustWait(candidate, this.#slot, this.#world)
    );
  }

  // Storage is promised anew each time; all else that a pod means to others stays the same.
  #resident(candidate: Candidate): Resident {
    const { pod } = candidate;
    if (pod.volumes.length === 0) {
      const model = this.#models.get(candidate) ?? this.#world.resident(pod, pod.requests);
      this.#models.set(candidate, model);
      return model;
    }
    const plan = planStorage(pod, this.#slot.node, this.#world.storage);
    return this.#world.resident(pod, pod.requests, 'filter' in plan ? undefined : plan);
  }
}

function sum(candidates: readonly Candidate[]): Load {
  return candidates.reduce((load, { demand }) => loadWith(demand, load), NOTHING);
}
