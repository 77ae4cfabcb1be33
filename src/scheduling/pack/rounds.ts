// SPDX-License-Identifier: Apache-2.0
// In what order groups of pods are placed, and who is tried again when things have changed.

import { type Bin, type Need, newBin } from './bins.ts';
import type { PodGroup } from './groups.ts';
import { Machines } from './machines.ts';
import type { Placer } from './placer.ts';
import { ANY_MACHINE, type Template } from './template.ts';
import type { Weights } from './weights.ts';

/** A group of which the first `placed` pods have a place. */
export interface Progress {
  readonly group: PodGroup;
  placed: number;
}

export function newWork(groups: readonly PodGroup[]): readonly Progress[] {
  return groups.map((group) => ({ group, placed: 0 }));
}

export function unfinished(work: readonly Progress[]): readonly Progress[] {
  return work.filter(({ group, placed }) => placed < group.pods.length);
}

/** Makes room for one more pod of a group, of which so many are left. */
type More = (group: PodGroup, left: number) => Bin | undefined;

/** Into the bins that are open, nothing else. */
export function fillNodes(work: readonly Progress[], placer: Placer): void {
  round(work, placer, (progress) => fillGroup(progress, placer, NO_MORE));
  again(work, placer, NO_MORE);
}

const NO_MORE: More = () => undefined;

export interface Workshop {
  readonly placer: Placer;
  readonly templates: readonly Template[];
  readonly weights: Weights;
}

export function fillMachines(work: readonly Progress[], workshop: Workshop): Machines {
  const { placer, weights } = workshop;
  const machines = new Machines(usefulTemplates(work, workshop), placer, weights);
  for (const { group, placed } of work) machines.expect(group, group.pods.length - placed);
  const room: More = (group, left) => machines.room(group, left);
  round(work, placer, (progress) => {
    machines.expect(progress.group, progress.placed - progress.group.pods.length);
    fillGroup(progress, placer, room);
  });
  again(work, placer, room);
  // What the machines to come kept from its place may have one now that it is known which ones come.
  machines.close();
  fillNodes(unfinished(work), placer);
  again(work, placer, (group) => machines.grow(group));
  return machines;
}

function round(
  work: readonly Progress[],
  placer: Placer,
  fill: (progress: Progress) => void,
): void {
  const floors = floorsOf(work);
  placer.startRound();
  for (const [i, progress] of work.entries()) {
    placer.raiseFloor(floors[i] ?? NOTHING);
    fill(progress);
  }
  placer.startRound();
}

// Whoever waited for others may have a place now, and others again may have waited for it.
function again(work: readonly Progress[], placer: Placer, more: More): void {
  let before: number;
  do {
    before = placer.placements.length;
    for (const progress of unfinished(work)) fillGroup(progress, placer, more);
  } while (placer.placements.length > before);
}

function fillGroup(progress: Progress, placer: Placer, more: More): void {
  const { group } = progress;
  for (;;) {
    progress.placed += placer.fill(group, progress.placed);
    if (progress.placed === group.pods.length) return;
    const bin = more(group, group.pods.length - progress.placed);
    if (bin === undefined) return;
    placer.place(group, progress.placed, bin);
    progress.placed += 1;
  }
}

const NOTHING: Need = { cpuMilli: 0, memoryBytes: 0 };

/** For each group the least that it or any later one asks for. */
function floorsOf(work: readonly Progress[]): readonly Need[] {
  const floors: Need[] = [];
  let floor: Need = { cpuMilli: Number.POSITIVE_INFINITY, memoryBytes: Number.POSITIVE_INFINITY };
  for (const { group } of work.toReversed()) {
    floor = {
      cpuMilli: Math.min(floor.cpuMilli, group.cpuMilli),
      memoryBytes: Math.min(floor.memoryBytes, group.memoryBytes),
    };
    floors.push(floor);
  }
  return floors.toReversed();
}

// A pool that nobody here can use brings no node, so its places are no domains either.
function usefulTemplates(
  work: readonly Progress[],
  { placer, templates }: Workshop,
): readonly Template[] {
  return templates.filter((template) => {
    const { world } = placer.draft;
    const bin = newBin(world.newSlot(template.node(ANY_MACHINE)), placer.newRuleClass());
    return work.some(
      ({ group }) =>
        placer.isAllowed(group, bin) && template.ladder.fit(loadOf(group), 0) !== undefined,
    );
  });
}

function loadOf({ candidate }: PodGroup): readonly number[] {
  const load: number[] = [];
  for (const [i, id] of candidate.demand.ids.entries()) load[id] = candidate.demand.amounts[i] ?? 0;
  return Array.from(load, (amount) => amount ?? 0);
}
