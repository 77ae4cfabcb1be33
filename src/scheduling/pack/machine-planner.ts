// SPDX-License-Identifier: Apache-2.0
// Opens planned machines, and enlarges them while they are only planned.

import type { Bin } from './bins.ts';
import { machineGrowth, sizeGrowth } from './budget.ts';
import type { PodGroup } from './groups.ts';
import { addLoads, type Load, loadWith, NO_LOAD } from './load.ts';
import { ANY_MACHINE, type MachineTemplate } from './machine-template.ts';
import { NextMachine } from './next-machine.ts';
import { MANY_SIZES } from './packing-plan.ts';
import type { GroupPods, PackingTask } from './packing-task.ts';
import type { Placer, PodPlacement } from './placer.ts';
import { loadFits, type SizeOption } from './size-options.ts';
import { type Weights, weightOf } from './weights.ts';

interface GrowthOption {
  readonly bin: Bin;
  readonly option: SizeOption;
}

interface OpeningOption {
  readonly next: NextMachine;
  readonly option: SizeOption;
}

export interface PlannerOptions {
  readonly placer: Placer;
  readonly weights: Weights;
  /**
   * Whether a machine that grows in one resource may give back a part of another, so that a limit which was
   * reached allows new machines again.
   */
  readonly mayGiveBack: boolean;
}

/** How many machines that can grow are compared before the cheapest is chosen. */
const MAX_COMPARED = 32;

export class MachinePlanner {
  readonly #placer: Placer;
  readonly #weights: Weights;
  readonly #mayGiveBack: boolean;
  readonly #haveDaemonPods: boolean;
  readonly #next: readonly NextMachine[];
  /** Most expensive first: a large machine wastes the least of its last size step. */
  readonly #growing: Bin[] = [];
  readonly opened: Bin[] = [];
  readonly #openedByPool = new Map<string, number>();
  /** Whether a machine that cannot be opened now may be opened later, after other pods are placed. */
  readonly mayReopen: boolean;

  constructor(
    templates: readonly MachineTemplate[],
    { placer, weights, mayGiveBack }: PlannerOptions,
  ) {
    this.#placer = placer;
    this.#weights = weights;
    this.#mayGiveBack = mayGiveBack;
    this.#next = templates.map((template) => new NextMachine(template, placer));
    this.#haveDaemonPods = templates.some((template) => template.daemons(ANY_MACHINE).length > 0);
    this.mayReopen = mayGiveBack || this.#haveDaemonPods;
  }

  /** Prepares an empty machine of each template, to be opened. */
  prepare(): void {
    for (const next of this.#next) next.prepare();
  }

  get haveManySizes(): boolean {
    return this.#next.some(({ template }) => template.sizeOptions.list.length > MANY_SIZES);
  }

  get haveLimits(): boolean {
    return this.#next.some(({ template }) => template.isLimited);
  }

  /** The cost of all opened machines. */
  get cost(): number {
    return this.opened.reduce((sum, bin) => sum + costOf(bin), 0);
  }

  /** Removes the prepared empty machines. None is opened until they are prepared again. */
  close(): void {
    for (const next of this.#next) next.withdraw();
  }

  /**
   * A bin for one more pod of the group, of which `left` remain: an enlarged or a new machine. Enlarging is
   * preferred, since it needs fewer machines, unless the size step is far larger than the remaining demand.
   */
  binFor(group: PodGroup, left: number): Bin | undefined {
    const growth = this.#cheapestGrowth(group);
    if (growth !== undefined && this.#isWorthGrowing(growth, group, left))
      return this.#grow(growth);
    const opening = this.#bestOpening(group);
    if (opening !== undefined) return this.#open(opening, group);
    return growth && this.#grow(growth);
  }

  /**
   * The groups by the templates that they may use: those of the pools with the highest priority. Without groups that may use
   * none.
   */
  packingTasks(groups: readonly GroupPods[]): readonly PackingTask[] {
    const templatesOf = ({ group }: GroupPods): readonly MachineTemplate[] => {
      const allowed = this.#next
        .filter((next) => next.allows(group))
        .map(({ template }) => template);
      const usable = allowed.filter(
        ({ sizeOptions, daemonLoad }) =>
          sizeOptions.cheapestFor(loadWith(group.pendingPod.demand, daemonLoad), 0) !== undefined,
      );
      if (usable.length === 0) return [];
      const priority = Math.max(...usable.map(({ pool }) => pool.priority ?? 0));
      // Also those that are too small for this group, so that it may share machines with smaller pods.
      return allowed.filter(({ pool }) => (pool.priority ?? 0) === priority);
    };
    const tasks = new Map<string, { templates: readonly MachineTemplate[]; groups: GroupPods[] }>();
    for (const one of groups) {
      const templates = templatesOf(one);
      if (templates.length === 0) continue;
      const key = templates
        .map((template) => this.#next.findIndex((next) => next.template === template))
        .join();
      const task = tasks.get(key) ?? { templates, groups: [] };
      tasks.set(key, task);
      task.groups.push(one);
    }
    return [...tasks.values()];
  }

  /**
   * Opens a machine while no other one is prepared. Beside prepared machines, which do not have their daemon
   * pods yet, topology spread may have excluded it.
   */
  openAlone(group: PodGroup): Bin | undefined {
    if (!this.#haveDaemonPods) return undefined;
    for (const next of this.#next) {
      next.prepare();
      const option = next.cheapestFor(group);
      const bin =
        option !== undefined && next.accepts(group)
          ? this.#open({ next, option }, group)
          : undefined;
      next.withdraw();
      if (bin !== undefined) return bin;
    }
    return undefined;
  }

  /** How many templates pods of all these groups may use. */
  countChoices(groups: readonly PodGroup[]): number {
    return this.#next.filter((next) => groups.every((group) => next.allows(group))).length;
  }

  /** Whether a new machine that pods of all these groups may use has space for this load. */
  canHold(groups: readonly PodGroup[], load: Load): boolean {
    return this.#next.some(
      (next) =>
        groups.every((group) => next.allows(group)) && next.cheapestForLoad(load) !== undefined,
    );
  }

  /** Opens the best machine for this load, for pods of the groups. */
  openFor(groups: readonly PodGroup[], load: Load): Bin | undefined {
    const [first] = groups;
    if (first === undefined) return undefined;
    const opening = this.#bestOpening(first, (next) =>
      groups.every((group) => next.allows(group)) ? next.cheapestForLoad(load) : undefined,
    );
    return opening && this.#open(opening, first);
  }

  /** Gives a machine for which fewer pods were accepted than planned the cheapest size that holds these. */
  shrink(bin: Bin): void {
    const { machine, nodeInfo } = bin;
    if (machine === undefined) return;
    const { template, option } = machine;
    const isSmaller = (other: SizeOption): boolean => {
      const { cpuMilli, memoryBytes, diskBytes } = sizeGrowth(
        option.size.capacity,
        other.size.capacity,
      );
      return cpuMilli <= 0 && memoryBytes <= 0 && diskBytes <= 0;
    };
    const load = addLoads(nodeInfo.used, machine.reserved);
    const smaller = template.sizeOptions.cheapestFor(load, 0, isSmaller);
    if (smaller === undefined || smaller.cost >= option.cost) return;
    if (this.#mayGiveBack)
      template.consume(sizeGrowth(option.size.capacity, smaller.size.capacity));
    machine.option = smaller;
    const at = this.#growing.indexOf(bin);
    if (at >= 0) this.#growing.splice(at, 1);
    this.#growing.push(bin);
    this.#reorder(bin, this.#growing.length - 1);
    this.#placer.refresh(bin);
  }

  /**
   * Only enlarges machines, for when none may be opened. As a last resort uses the space reserved for daemon
   * pods.
   */
  growFor(group: PodGroup): Bin | undefined {
    const growth = this.#cheapestGrowth(group);
    return growth === undefined ? this.#useReserved(group) : this.#grow(growth);
  }

  #useReserved(group: PodGroup): Bin | undefined {
    for (const bin of this.opened) {
      const { machine, nodeInfo } = bin;
      if (machine === undefined || machine.reserved.length === 0) continue;
      if (!this.#placer.accepts(group, bin)) continue;
      const hasSpace = loadFits(
        loadWith(group.pendingPod.demand, nodeInfo.used),
        machine.option.allocatable,
      );
      const option = hasSpace ? machine.option : this.#grownOption(group, bin, NO_LOAD);
      if (option === undefined) continue;
      machine.reserved = NO_LOAD;
      if (!hasSpace) return this.#grow({ bin, option });
      this.#placer.refresh(bin);
      return bin;
    }
    return undefined;
  }

  /** Admits the waiting daemon pods after all other pods are placed. Admitting one may allow another. */
  admitDaemonPods(): readonly PodPlacement[] {
    const admitted: PodPlacement[] = [];
    let before: number;
    do {
      before = admitted.length;
      for (const bin of this.opened) {
        const pods = bin.machine?.daemons.admit(this.#placer.draft, bin.machine.option) ?? [];
        for (const pod of pods) admitted.push({ pod, bin });
      }
    } while (admitted.length > before);
    return admitted;
  }

  /** Adds the expected demand of a group's pods that are not placed yet; subtracts it if negative. */
  expectPods(group: PodGroup, pods: number): void {
    for (const next of this.#next) {
      if (!next.allows(group)) continue;
      next.template.expectLoad(group.cpuMilli * pods, group.memoryBytes * pods);
    }
  }

  // The remaining demand must fill at least half of the size step, in CPU or in memory, unless every new
  // machine would be larger than the step.
  #isWorthGrowing({ bin, option }: GrowthOption, group: PodGroup, left: number): boolean {
    const { machine } = bin;
    if (machine === undefined) return false;
    const { template } = machine;
    const step = sizeGrowth(machine.option.size.capacity, option.size.capacity);
    const cpu = template.expectedCpuMilli + left * group.cpuMilli;
    const memory = template.expectedMemoryBytes + left * group.memoryBytes;
    if (step.cpuMilli <= 2 * cpu || step.memoryBytes <= 2 * memory) return true;
    const weight = weightOf(step, this.#weights);
    return !this.#next.some((next) => {
      const alone = next.cheapestFor(group);
      return alone !== undefined && this.#weightOfOption(alone) < weight;
    });
  }

  #weightOfOption(option: SizeOption): number {
    return weightOf(option.size.capacity, this.#weights);
  }

  #cheapestGrowth(group: PodGroup): GrowthOption | undefined {
    if (this.#placer.isRejectedEverywhere(group)) return undefined;
    let best: GrowthOption | undefined;
    let leastStep = Number.POSITIVE_INFINITY;
    let compared = 0;
    for (const bin of this.#growing) {
      const option = this.#grownOption(group, bin);
      if (option === undefined) continue;
      const step = option.cost - costOf(bin);
      compared += 1;
      if (step < leastStep && this.#placer.accepts(group, bin)) {
        best = { bin, option };
        leastStep = step;
      }
      if (compared >= MAX_COMPARED && best !== undefined) break;
    }
    return best;
  }

  #grownOption(
    group: PodGroup,
    { nodeInfo, machine }: Bin,
    reserved = machine?.reserved ?? NO_LOAD,
  ): SizeOption | undefined {
    if (machine === undefined) return undefined;
    const { template, option } = machine;
    const load = addLoads(loadWith(group.pendingPod.demand, nodeInfo.used), reserved);
    return template.cheapestToGrow(load, option, this.#mayGiveBack);
  }

  #grow({ bin, option }: GrowthOption): Bin {
    const { machine } = bin;
    if (machine === undefined) throw new RangeError('only planned machines can be enlarged');
    machine.template.consume(sizeGrowth(machine.option.size.capacity, option.size.capacity));
    machine.option = option;
    this.#reorder(bin, this.#growing.indexOf(bin));
    this.#placer.refresh(bin);
    return bin;
  }

  /** Moves a machine that became more expensive to its sorted position, or removes it if it cannot grow further. */
  #reorder(bin: Bin, from: number): void {
    const order = this.#growing;
    if (bin.machine?.option === bin.machine?.template.sizeOptions.largest) {
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

  #bestOpening(
    group: PodGroup,
    optionOf = (next: NextMachine): SizeOption | undefined => next.cheapestFor(group),
  ): OpeningOption | undefined {
    let best: OpeningOption | undefined;
    let bestRank: readonly number[] = [];
    for (const next of this.#next) {
      const option = optionOf(next);
      if (option === undefined || !next.accepts(group)) continue;
      const rank = next.rank(group, option, this.#openedOf(next.template.pool.name));
      if (best === undefined || isBefore(rank, bestRank)) {
        best = { next, option };
        bestRank = rank;
      }
    }
    return best;
  }

  #openedOf(pool: string): number {
    return this.#openedByPool.get(pool) ?? 0;
  }

  #open({ next, option }: OpeningOption, group: PodGroup): Bin {
    const { template } = next;
    const bin = this.#placer.open(next.open(group, option));
    template.consume(machineGrowth(option.size.capacity));
    this.opened.push(bin);
    this.#openedByPool.set(template.pool.name, this.#openedOf(template.pool.name) + 1);
    this.#growing.push(bin);
    this.#reorder(bin, this.#growing.length - 1);
    next.prepare();
    // The new machine may have exhausted a limit that other templates share.
    for (const other of this.#next) if (!other.canOpen()) other.withdraw();
    return bin;
  }
}

function costOf({ machine }: Bin): number {
  return machine?.option.cost ?? 0;
}

function isBefore(left: readonly number[], right: readonly number[]): boolean {
  for (const [i, value] of left.entries()) {
    if (value !== right[i]) return value < (right[i] ?? 0);
  }
  return false;
}
