// SPDX-License-Identifier: Apache-2.0
// Machines that are planned: opening them, and letting them grow while nothing is made yet.

import type { Bin } from './bins.ts';
import { enlargement, newMachine } from './budget.ts';
import type { PodGroup } from './groups.ts';
import { isHeld, type Rung } from './ladder.ts';
import { addLoads, loadWith, NOTHING } from './load.ts';
import type { Placement, Placer } from './placer.ts';
import { Spare } from './spare.ts';
import type { Template } from './template.ts';
import { type Weights, weightOf } from './weights.ts';

interface Growing {
  readonly bin: Bin;
  readonly rung: Rung;
}

interface Opening {
  readonly spare: Spare;
  readonly rung: Rung;
}

/** Machines with room to grow that are compared before the cheapest step is taken. */
const COMPARED = 32;

export class Machines {
  readonly #placer: Placer;
  readonly #weights: Weights;
  readonly #spares: readonly Spare[];
  /** From the dearest to the cheapest: a large machine wastes the least of its last step. */
  readonly #growing: Bin[] = [];
  readonly opened: Bin[] = [];

  constructor(templates: readonly Template[], placer: Placer, weights: Weights) {
    this.#placer = placer;
    this.#weights = weights;
    this.#spares = templates.map((template) => new Spare(template, placer));
    for (const spare of this.#spares) spare.provide();
  }

  /** Takes the empty machines away: from here on nothing new is opened. */
  close(): void {
    for (const spare of this.#spares) spare.withdraw();
  }

  /**
   * A bin for one more pod of the group, of which so many are left, grown or opened for it. Growing comes first, since it makes fewer
   * machines, unless the step is far larger than what is still to come.
   */
  room(group: PodGroup, left: number): Bin | undefined {
    const growth = this.#cheapestGrowth(group);
    if (growth !== undefined && this.#isWorth(growth, group, left)) return this.#grow(growth);
    const opening = this.#bestOpening(group);
    if (opening !== undefined) return this.#open(opening, group);
    return growth && this.#grow(growth);
  }

  /** Only growth, for when nothing new may be opened; at last into the room that was kept for daemons. */
  grow(group: PodGroup): Bin | undefined {
    const growth = this.#cheapestGrowth(group);
    return growth === undefined ? this.#squeeze(group) : this.#grow(growth);
  }

  #squeeze(group: PodGroup): Bin | undefined {
    for (const bin of this.opened) {
      const { machine, slot } = bin;
      if (machine === undefined || machine.kept.length === 0) continue;
      if (!this.#placer.accepts(group, bin)) continue;
      const isRoom = isHeld(loadWith(group.candidate.demand, slot.used), machine.rung.holds);
      const rung = isRoom ? machine.rung : grownRung(group, bin, NOTHING);
      if (rung === undefined) continue;
      machine.kept = NOTHING;
      if (!isRoom) return this.#grow({ bin, rung });
      this.#placer.refresh(bin);
      return bin;
    }
    return undefined;
  }

  /** Brings daemons that had to wait for others, once nothing more is placed; they may wait for each other. */
  settle(): readonly Placement[] {
    const settled: Placement[] = [];
    let before: number;
    do {
      before = settled.length;
      for (const bin of this.opened) {
        const pods = bin.machine?.daemons.settle(this.#placer.draft, bin.machine.rung) ?? [];
        for (const pod of pods) settled.push({ pod, bin });
      }
    } while (settled.length > before);
    return settled;
  }

  /** Tells how many more pods of other groups than the one at hand are to come; fewer, when negative. */
  expect(group: PodGroup, pods: number): void {
    for (const spare of this.#spares) {
      if (!spare.allows(group)) continue;
      spare.template.expect(group.cpuMilli * pods, group.memoryBytes * pods);
    }
  }

  // What is still to come must fill half of the step at least, in cpu or in memory, unless any new machine
  // would be larger than the step.
  #isWorth({ bin, rung }: Growing, group: PodGroup, left: number): boolean {
    const { machine } = bin;
    if (machine === undefined) return false;
    const { template } = machine;
    const step = enlargement(machine.rung.size.capacity, rung.size.capacity);
    const cpu = template.comingCpuMilli + left * group.cpuMilli;
    const memory = template.comingMemoryBytes + left * group.memoryBytes;
    if (step.cpuMilli <= 2 * cpu || step.memoryBytes <= 2 * memory) return true;
    const weight = weightOf(step, this.#weights);
    return !this.#spares.some((spare) => {
      const alone = spare.rungFor(group);
      return alone !== undefined && this.#weight(alone) < weight;
    });
  }

  #weight(rung: Rung): number {
    return weightOf(rung.size.capacity, this.#weights);
  }

  #cheapestGrowth(group: PodGroup): Growing | undefined {
    if (this.#placer.isBarredEverywhere(group)) return undefined;
    let best: Growing | undefined;
    let leastStep = Number.POSITIVE_INFINITY;
    let compared = 0;
    for (const bin of this.#growing) {
      const rung = grownRung(group, bin);
      if (rung === undefined) continue;
      const step = rung.cost - costOf(bin);
      compared += 1;
      if (step < leastStep && this.#placer.accepts(group, bin)) {
        best = { bin, rung };
        leastStep = step;
      }
      if (compared >= COMPARED && best !== undefined) break;
    }
    return best;
  }

  #grow({ bin, rung }: Growing): Bin {
    const { machine } = bin;
    if (machine === undefined) throw new RangeError('only machines that are planned can grow');
    machine.template.take(enlargement(machine.rung.size.capacity, rung.size.capacity));
    machine.rung = rung;
    this.#sort(bin, this.#growing.indexOf(bin));
    this.#placer.refresh(bin);
    return bin;
  }

  /** Moves a machine that has become dearer to its place, or out when it cannot grow any more. */
  #sort(bin: Bin, from: number): void {
    const order = this.#growing;
    if (bin.machine?.rung === bin.machine?.template.ladder.largest) {
      order.splice(from, 1);
      return;
    }
    let at = from;
    for (let before = order[at - 1]; before !== undefined; before = order[at - 1]) {
      if (costOf(before) >= costOf(bin)) break;
      order[at] = before;
      at -= 1;
    }
    order[at] = bin;
  }

  #bestOpening(group: PodGroup): Opening | undefined {
    let best: Opening | undefined;
    let bestRank: readonly number[] = [];
    for (const spare of this.#spares) {
      const rung = spare.rungFor(group);
      if (rung === undefined || !spare.accepts(group)) continue;
      const rank = spare.rank(group, rung);
      if (best === undefined || isBefore(rank, bestRank)) {
        best = { spare, rung };
        bestRank = rank;
      }
    }
    return best;
  }

  #open({ spare, rung }: Opening, group: PodGroup): Bin {
    const { template } = spare;
    const bin = this.#placer.open(spare.take(group, rung));
    template.take(newMachine(rung.size.capacity));
    this.opened.push(bin);
    this.#growing.push(bin);
    this.#sort(bin, this.#growing.length - 1);
    spare.provide();
    // Opening may have used up a limit that other templates share.
    for (const other of this.#spares) if (!other.isOpenable()) other.withdraw();
    return bin;
  }
}

function costOf({ machine }: Bin): number {
  return machine?.rung.cost ?? 0;
}

function grownRung(
  group: PodGroup,
  { slot, machine }: Bin,
  kept = machine?.kept ?? NOTHING,
): Rung | undefined {
  if (machine === undefined) return undefined;
  const { template, rung } = machine;
  const load = addLoads(loadWith(group.candidate.demand, slot.used), kept);
  const larger = template.ladder.fit(load, rung.index);
  if (larger === undefined || !template.isLimited) return larger;
  const growth = enlargement(rung.size.capacity, larger.size.capacity);
  return template.hit(growth) === undefined ? larger : undefined;
}

function isBefore(left: readonly number[], right: readonly number[]): boolean {
  for (const [i, value] of left.entries()) {
    if (value !== right[i]) return value < (right[i] ?? 0);
  }
  return false;
}
