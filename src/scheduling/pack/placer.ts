// SPDX-License-Identifier: Apache-2.0
// Puts pods of a group into open bins, one by one, each time where the least is left over.

import { matchesTerm } from '../../model/node-selector.ts';
import type { Pod } from '../../model/pod.ts';
import { isBarred, mustWait, passesNodeRules } from '../filters/all.ts';
import { planStorage } from '../filters/volume-binding.ts';
import type { Draft } from '../snapshot.ts';
import type { Resident } from '../state/resident.ts';
import { CPU, MEMORY } from '../state/resource-names.ts';
import type { Slot } from '../state/slot.ts';
import { type Bin, Bins, newBin } from './bins.ts';
import type { PodGroup } from './groups.ts';

export interface Placement {
  readonly pod: Pod;
  readonly bin: Bin;
}

const UNKNOWN = 0;
const YES = 1;
const NO = 2;

export class Placer {
  readonly draft: Draft;
  readonly placements: Placement[] = [];
  readonly #bins: Bins;
  readonly #open: Bin[] = [];
  /** By the number of a group's rules, then by a bin's rule class. */
  readonly #verdicts: number[][] = [];
  readonly #preferences: number[][] = [];
  /** Bins that said no to a group's rules and will not change their mind while pods only come. */
  readonly #barredBins: Set<Bin>[] = [];
  readonly #models = new Map<PodGroup['candidate'], Resident>();
  #ruleClasses = 0;
  #names = 0;

  constructor(draft: Draft, weights: { readonly cpu: number; readonly memory: number }) {
    this.draft = draft;
    this.#bins = new Bins(weights);
  }

  /** A name that no node has, for a machine that is only planned. */
  freeName(prefix: string): string {
    do this.#names += 1;
    while (this.draft.world.slot(`${prefix}-new-${this.#names}`) !== undefined);
    return `${prefix}-new-${this.#names}`;
  }

  newRuleClass(): number {
    this.#ruleClasses += 1;
    return this.#ruleClasses - 1;
  }

  addNode(slot: Slot): Bin {
    return this.open(newBin(slot, this.newRuleClass()));
  }

  open(bin: Bin): Bin {
    bin.isOpen = true;
    this.#open.push(bin);
    this.refresh(bin);
    return bin;
  }

  /** From here on who said no is asked again. */
  startRound(): void {
    this.#barredBins.length = 0;
  }

  refresh(bin: Bin): void {
    this.#bins.put(bin, { cpuMilli: roomIn(bin, CPU), memoryBytes: roomIn(bin, MEMORY) });
  }

  /** Places as many as there is room for; returns how many that were. */
  fill(group: PodGroup, from: number): number {
    let next = from;
    let last: Bin | undefined;
    while (next < group.pods.length) {
      const bin = this.#again(group, last) ?? this.findRoom(group);
      if (bin === undefined) break;
      this.place(group, next, bin);
      last = bin;
      next += 1;
    }
    return next - from;
  }

  // The bin that was the tightest for the last pod is tighter still for the next one like it.
  #again(group: PodGroup, last: Bin | undefined): Bin | undefined {
    return last !== undefined && this.hasRoom(group, last) && this.accepts(group, last)
      ? last
      : undefined;
  }

  findRoom(group: PodGroup): Bin | undefined {
    if (this.isBarredEverywhere(group)) return undefined;
    if (group.candidate.pod.preferredNodes.length > 0) return this.#findPreferred(group);
    return this.#bins.tightest(
      group,
      (bin) => this.hasRoom(group, bin) && this.accepts(group, bin),
    );
  }

  #findPreferred(group: PodGroup): Bin | undefined {
    const levels = new Set(this.#bins.all().map((bin) => this.preference(group, bin)));
    for (const level of [...levels].sort((a, b) => b - a)) {
      const found = this.#bins.tightest(
        group,
        (bin) =>
          this.preference(group, bin) === level &&
          this.hasRoom(group, bin) &&
          this.accepts(group, bin),
      );
      if (found !== undefined) return found;
    }
    return undefined;
  }

  hasRoom({ candidate }: PodGroup, bin: Bin): boolean {
    const { ids, amounts } = candidate.demand;
    for (let i = 0; i < ids.length; i += 1) {
      if ((amounts[i] ?? 0) > roomIn(bin, ids[i] ?? 0)) return false;
    }
    return true;
  }

  /** Everything but room. */
  accepts(group: PodGroup, bin: Bin): boolean {
    return (
      !this.#barred(group).has(bin) &&
      this.isAllowed(group, bin) &&
      !this.#bar(group, bin) &&
      !mustWait(group.candidate, bin.slot, this.draft.world)
    );
  }

  /** Whether no open bin is worth asking: all have said no for good. */
  isBarredEverywhere(group: PodGroup): boolean {
    return this.#barred(group).size === this.#open.length;
  }

  #bar(group: PodGroup, bin: Bin): boolean {
    const isNo = isBarred(group.candidate, bin.slot, this.draft.world);
    if (isNo && bin.isOpen) this.#barred(group).add(bin);
    return isNo;
  }

  #barred({ rules }: PodGroup): Set<Bin> {
    const known = this.#barredBins[rules] ?? new Set<Bin>();
    this.#barredBins[rules] = known;
    return known;
  }

  isAllowed({ candidate, rules }: PodGroup, bin: Bin): boolean {
    const verdicts = this.#verdicts[rules] ?? [];
    this.#verdicts[rules] = verdicts;
    const known = verdicts[bin.ruleClass] ?? UNKNOWN;
    if (known !== UNKNOWN) return known === YES;
    const isAllowed = passesNodeRules(candidate, bin.slot, this.draft.world);
    verdicts[bin.ruleClass] = isAllowed ? YES : NO;
    return isAllowed;
  }

  /** The weight of the pod's wishes that the bin's node meets. */
  preference({ candidate, rules }: PodGroup, bin: Bin): number {
    const known = this.#preferences[rules] ?? [];
    this.#preferences[rules] = known;
    const weight =
      known[bin.ruleClass] ??
      candidate.pod.preferredNodes
        .filter(({ term }) => matchesTerm(term, bin.slot.node))
        .reduce((sum, one) => sum + one.weight, 0);
    known[bin.ruleClass] = weight;
    return weight;
  }

  place(group: PodGroup, index: number, bin: Bin): void {
    const pod = group.pods[index];
    if (pod === undefined) throw new RangeError('a group has no such pod');
    this.draft.place(this.#resident(group, pod, bin), bin.slot);
    this.placements.push({ pod, bin });
    this.refresh(bin);
    // Pods that refuse each other bar every bin they are put in: known now, it need not be found out later.
    if (group.candidate.refuses.length > 0) this.#bar(group, bin);
  }

  // Pods of a group differ in name only, so what they mean to others is worked out once.
  #resident({ candidate }: PodGroup, pod: Pod, { slot }: Bin): Resident {
    const { world } = this.draft;
    if (pod.volumes.length > 0) {
      const plan = planStorage(pod, slot.node, world.storage);
      return world.resident(pod, pod.requests, 'filter' in plan ? undefined : plan);
    }
    const model = this.#models.get(candidate) ?? world.resident(pod, pod.requests);
    this.#models.set(candidate, model);
    return { ...model, pod };
  }
}

function roomIn({ slot, machine }: Bin, resource: number): number {
  if (machine === undefined) return slot.free(resource);
  const taken = (slot.used[resource] ?? 0) + (machine.kept[resource] ?? 0);
  return (machine.rung.holds[resource] ?? 0) - taken;
}
