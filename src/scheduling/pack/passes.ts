// SPDX-License-Identifier: Apache-2.0
// The order in which pod groups are placed, and the passes that retry them after changes.

import { type Bin, newBin } from './bins.ts';
import { distributeCompanions, findCompanions } from './companions.ts';
import type { PodGroup } from './groups.ts';
import { loadWith, NO_LOAD } from './load.ts';
import { MachinePlanner } from './machine-planner.ts';
import { ANY_MACHINE, type MachineTemplate } from './machine-template.ts';
import { compareByCost, findPackingPlans, isPlain } from './packing-plan.ts';
import type { GroupPods, MachinePods, PackingPlan } from './packing-task.ts';
import type { Placer } from './placer.ts';
import type { Weights } from './weights.ts';

/** A group whose first `placed` pods are placed. */
export interface GroupProgress {
  readonly group: PodGroup;
  placed: number;
}

export function startProgress(groups: readonly PodGroup[]): readonly GroupProgress[] {
  return groups.map((group) => ({ group, placed: 0 }));
}

export function unfinished(work: readonly GroupProgress[]): readonly GroupProgress[] {
  return work.filter((progress) => podsLeft(progress) > 0);
}

/** Finds or makes space for one more pod of the group. */
type MakeSpace = (progress: GroupProgress) => Bin | undefined;

/** Fills open bins only. */
export function fillNodes(work: readonly GroupProgress[], placer: Placer): void {
  repeatPasses(work, placer, (progress) => fillGroup(progress, placer, () => undefined));
}

export interface MachineContext {
  readonly placer: Placer;
  readonly templates: readonly MachineTemplate[];
  readonly weights: Weights;
  /** Which pods share a machine. The others, and those that a filter rejects there, are placed as usual. */
  readonly plan?: PackingPlan | undefined;
  /**
   * Pods that must run on one node get their machines before all others: this many more than necessary. Absent: they get no machines
   * of their own.
   */
  readonly extraForCompanions?: number | undefined;
}

export interface FilledMachines {
  readonly machines: MachinePlanner;
  /**
   * Which pods could share a machine if only requests and node rules mattered. Empty if such a plan was carried out,
   * or would not help.
   */
  readonly plans: readonly PackingPlan[];
}

export function fillMachines(
  work: readonly GroupProgress[],
  context: MachineContext,
): FilledMachines {
  const { placer, weights } = context;
  // A machine that is offered again is a new domain. Pods already spread over the others might not have been.
  const mayGiveBack = work.every(({ group }) => group.pendingPod.spreadChecks.length === 0);
  const machines = new MachinePlanner(usefulTemplates(work, context), {
    placer,
    weights,
    mayGiveBack,
  });
  if (context.extraForCompanions !== undefined)
    openForCompanions(work, { machines, placer, more: context.extraForCompanions });
  const plans = context.plan === undefined ? packingPlansFor(work, machines, weights) : [];
  // With prices and many sizes the cheapest plan is hardly ever worse than the usual order, which need not be tried.
  const canPlanAtOnce = weights.isPriced && machines.haveManySizes && !machines.haveLimits;
  const plan = context.plan ?? (canPlanAtOnce ? plans.toSorted(compareByCost)[0] : undefined);
  if (plan !== undefined) openMachines(plan, work, { machines, placer });
  fillInOrder(work, machines, placer);
  return { machines, plans: plan === undefined ? plans : [] };
}

/** Places what is left, group by group, on open machines and on new ones. */
function fillInOrder(
  work: readonly GroupProgress[],
  machines: MachinePlanner,
  placer: Placer,
): void {
  for (const progress of work) machines.expectPods(progress.group, podsLeft(progress));
  let before: number;
  do {
    before = placer.placements.length;
    machines.prepare();
    repeatPasses(work, placer, (progress) => {
      machines.expectPods(progress.group, -podsLeft(progress));
      fillGroup(progress, placer, ({ group }) => machines.binFor(group, podsLeft(progress)));
      machines.expectPods(progress.group, podsLeft(progress));
    });
    // Prepared machines may have excluded pods that fit now that the opened machines are known.
    machines.close();
    repeatPasses(work, placer, (progress) => {
      fillGroup(
        progress,
        placer,
        ({ group }) => machines.growFor(group) ?? machines.openAlone(group),
      );
    });
    // Placed pods may keep daemon pods off a new machine, so that a smaller size within the limits suffices.
  } while (machines.mayReopen && placer.placements.length > before);
}

function packingPlansFor(
  work: readonly GroupProgress[],
  machines: MachinePlanner,
  weights: Weights,
): readonly PackingPlan[] {
  // With many sizes machines hardly have space left, so that a plan which ignores constraints would not help.
  if (machines.haveManySizes && !work.every(({ group }) => isPlain(group))) return [];
  return findPackingPlans(machines.packingTasks(numbered(work)), weights);
}

/** The groups that have pods left. */
function numbered(work: readonly GroupProgress[]): readonly GroupPods[] {
  return work
    .map((progress, number) => ({ number, group: progress.group, pods: podsLeft(progress) }))
    .filter(({ pods }) => pods > 0);
}

function openForCompanions(
  work: readonly GroupProgress[],
  {
    machines,
    placer,
    more,
  }: { readonly machines: MachinePlanner; readonly placer: Placer; readonly more: number },
): void {
  machines.prepare();
  const canHold = (pods: MachinePods): boolean => {
    const parts = partsOf(pods, work);
    return machines.canHold(groupsOf(parts), loadOf(parts));
  };
  for (const companions of findCompanions(numbered(work), placer.draft.cluster)) {
    const machinePods = distributeCompanions(companions, { more, canHold });
    openMachines({ machinePods: () => machinePods }, work, { machines, placer });
  }
}

function openMachines(
  { machinePods }: Pick<PackingPlan, 'machinePods'>,
  work: readonly GroupProgress[],
  { machines, placer }: { readonly machines: MachinePlanner; readonly placer: Placer },
): void {
  machines.prepare();
  const planned = machinePods().map((pods) => partsOf(pods, work));
  // Pods that may use several pools leave the limits of one to pods that may use only that one.
  const sorted = machines.haveLimits
    ? planned
        .map((parts) => ({ parts, choices: machines.countChoices(groupsOf(parts)) }))
        .toSorted((a, b) => a.choices - b.choices)
        .map(({ parts }) => parts)
    : planned;
  for (const parts of sorted) {
    const bin = machines.openFor(groupsOf(parts), loadOf(parts));
    if (bin === undefined) continue;
    for (const { progress, count } of parts)
      for (let i = 0; i < count; i += 1) placeIn(bin, progress, placer);
    machines.shrink(bin);
  }
}

/** Pods of one group on a planned machine. */
interface Part {
  readonly progress: GroupProgress;
  readonly count: number;
}

function partsOf(pods: MachinePods, work: readonly GroupProgress[]): readonly Part[] {
  return [...pods].flatMap(([number, count]) => {
    const progress = work[number];
    return progress === undefined || count === 0 ? [] : [{ progress, count }];
  });
}

function groupsOf(parts: readonly Part[]): readonly PodGroup[] {
  return parts.map(({ progress }) => progress.group);
}

function loadOf(parts: readonly Part[]): readonly number[] {
  const load: number[] = [];
  for (const { progress, count } of parts) addPods(load, progress.group, count);
  return load;
}

function placeIn(bin: Bin, progress: GroupProgress, placer: Placer): void {
  const { group } = progress;
  if (!placer.hasCapacity(group, bin) || !placer.accepts(group, bin)) return;
  placer.place(group, progress.placed, bin);
  progress.placed += 1;
}

function addPods(load: number[], { pendingPod }: PodGroup, count: number): void {
  const { ids, amounts } = pendingPod.demand;
  for (const [i, id] of ids.entries()) {
    while (load.length <= id) load.push(0);
    load[id] = (load[id] ?? 0) + count * (amounts[i] ?? 0);
  }
}

function podsLeft({ group, placed }: GroupProgress): number {
  return group.pods.length - placed;
}

// A placement may make another group placeable, and that one may make others placeable.
function repeatPasses(
  work: readonly GroupProgress[],
  placer: Placer,
  fill: (progress: GroupProgress) => void,
): void {
  let before: number;
  do {
    before = placer.placements.length;
    placer.startPass();
    for (const progress of unfinished(work)) fill(progress);
  } while (placer.placements.length > before);
}

function fillGroup(progress: GroupProgress, placer: Placer, makeSpace: MakeSpace): void {
  const { group } = progress;
  for (;;) {
    progress.placed += placer.fill(group, progress.placed);
    if (podsLeft(progress) === 0) return;
    const bin = makeSpace(progress);
    if (bin === undefined) return;
    placer.place(group, progress.placed, bin);
    progress.placed += 1;
  }
}

// A pool that no group can use adds no nodes, so its domains must not count for topology spread.
function usefulTemplates(
  work: readonly GroupProgress[],
  { placer, templates }: MachineContext,
): readonly MachineTemplate[] {
  return templates.filter((template) => {
    const { cluster } = placer.draft;
    const bin = newBin(cluster.newNodeInfo(template.node(ANY_MACHINE)), placer.newRuleClass());
    return work.some(
      ({ group }) =>
        placer.isAllowed(group, bin) &&
        template.sizeOptions.cheapestFor(loadWith(group.pendingPod.demand, NO_LOAD), 0) !==
          undefined,
    );
  });
}
