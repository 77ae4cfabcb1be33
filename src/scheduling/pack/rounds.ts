// SPDX-License-Identifier: Apache-2.0
// In what order groups of pods are placed, and who is tried again when things have changed.

import { type Bin, newBin } from './bins.ts';
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
  return work.filter((progress) => left(progress) > 0);
}

/** Makes room for one more pod of the group. */
type More = (progress: Progress) => Bin | undefined;

/** Into the bins that are open, nothing else. */
export function fillNodes(work: readonly Progress[], placer: Placer): void {
  rounds(work, placer, (progress) => fillGroup(progress, placer, () => undefined));
}

export interface Workshop {
  readonly placer: Placer;
  readonly templates: readonly Template[];
  readonly weights: Weights;
}

export function fillMachines(work: readonly Progress[], workshop: Workshop): Machines {
  const { placer, weights } = workshop;
  const machines = new Machines(usefulTemplates(work, workshop), placer, weights);
  for (const progress of work) machines.expect(progress.group, left(progress));
  rounds(work, placer, (progress) => {
    machines.expect(progress.group, -left(progress));
    fillGroup(progress, placer, ({ group }) => machines.room(group, left(progress)));
    machines.expect(progress.group, left(progress));
  });
  // What the machines to come kept from its place may have one now that it is known which ones come.
  machines.close();
  rounds(work, placer, (progress) => {
    fillGroup(progress, placer, ({ group }) => machines.grow(group));
  });
  return machines;
}

function left({ group, placed }: Progress): number {
  return group.pods.length - placed;
}

// Whoever waited for others may have a place now, and others again may have waited for it.
function rounds(
  work: readonly Progress[],
  placer: Placer,
  fill: (progress: Progress) => void,
): void {
  let before: number;
  do {
    before = placer.placements.length;
    placer.startRound();
    for (const progress of unfinished(work)) fill(progress);
  } while (placer.placements.length > before);
}

function fillGroup(progress: Progress, placer: Placer, more: More): void {
  const { group } = progress;
  for (;;) {
    progress.placed += placer.fill(group, progress.placed);
    if (left(progress) === 0) return;
    const bin = more(progress);
    if (bin === undefined) return;
    placer.place(group, progress.placed, bin);
    progress.placed += 1;
  }
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
