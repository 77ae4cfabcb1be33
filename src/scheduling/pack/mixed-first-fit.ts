// SPDX-License-Identifier: Apache-2.0
// First-fit-decreasing for pods that may use different pools, and for pods that are too large for some sizes: a pod may share a
// machine with any other that may use its pool. Plans for one capacity, which is best for pods with equal rules, cannot do so.

import { loadWith } from './load.ts';
import type { MachineTemplate } from './machine-template.ts';
import { isSizeRange } from './offer.ts';
import type { GroupPods, MachinePods, PackingPlan, PackingTask } from './packing-task.ts';
import { loadFits, type SizeOption } from './size-options.ts';

/** With more sizes, these plans are not made. */
const MAX_SIZES = 64;
/** After about so many comparisons of pods with machines, no further plan is made. */
const MAX_STEPS = 20_000_000;

interface Size {
  readonly template: MachineTemplate;
  /** Equal for the same size in several domains. */
  readonly option: SizeOption;
  /** What is left beside the daemon pods, by resource id. */
  readonly free: readonly number[];
}

interface Shape extends GroupPods {
  readonly templates: ReadonlySet<MachineTemplate>;
  /** Those that its pods may use and that hold one, the cheapest first. */
  readonly sizes: readonly Size[];
}

interface Bin {
  readonly size: Size;
  readonly free: number[];
  readonly pods: Map<Shape, number>;
}

/** One plan for each size, which is preferred wherever it may be used, and each order of the pods. */
export function mixedFirstFits(tasks: readonly PackingTask[]): readonly PackingPlan[] {
  const sizes = sizesOf(tasks);
  if (sizes.length > MAX_SIZES) return [];
  const shapes = tasks.flatMap(({ templates, groups }) => {
    const own = new Set(templates);
    return groups.map(
      (one): Shape => ({
        ...one,
        templates: own,
        sizes: sizes.filter((size) => own.has(size.template) && holds(size, one)),
      }),
    );
  });
  // A plan without those that may use only a range of sizes would look better than it is.
  if (shapes.some((shape) => shape.sizes.length === 0)) return [];
  if (shapes.every((shape) => shape.sizes.length === sizes.length)) return [];
  const plans: PackingPlan[] = [];
  const budget = { steps: MAX_STEPS };
  for (const preferred of sizes) {
    for (const key of KEYS) {
      const order = shapes.toSorted((a, b) => key(b, preferred) - key(a, preferred));
      const bins = firstFit(order, preferred, budget);
      if (bins === undefined) return plans;
      plans.push(planOf(bins, sizes));
    }
  }
  return plans;
}

function sizesOf(tasks: readonly PackingTask[]): readonly Size[] {
  const all = new Set(tasks.flatMap(({ templates }) => templates));
  // The domains of a pool offer the same sizes, but some pods may use only some of the domains.
  const distinct = new Map<string, MachineTemplate>();
  for (const one of all) {
    const users = tasks.flatMap(({ templates }, i) => (templates.includes(one) ? [i] : []));
    const key = JSON.stringify([one.pool.name, one.sizeLabels, one.daemonLoad, users]);
    if (!distinct.has(key)) distinct.set(key, one);
  }
  return [...distinct.values()]
    .filter(({ pool }) => !isSizeRange(pool.sizes))
    .flatMap((template) =>
      template.sizeOptions.list.map((option) => ({
        template,
        option,
        free: option.allocatable.map((amount, id) => amount - (template.daemonLoad[id] ?? 0)),
      })),
    )
    .toSorted((a, b) => a.option.cost - b.option.cost);
}

function holds({ template, option }: Size, { group }: GroupPods): boolean {
  return loadFits(loadWith(group.pendingPod.demand, template.daemonLoad), option.allocatable);
}

type Key = (shape: Shape, size: Size) => number;

const shares = ({ group }: Shape, { free }: Size): readonly number[] => {
  const { ids, amounts } = group.pendingPod.demand;
  return ids.map((id, i) => (amounts[i] ?? 0) / Math.max(1, free[id] ?? 0));
};

const KEYS: readonly Key[] = [
  ({ group }) => group.cpuMilli,
  ({ group }) => group.memoryBytes,
  (shape, size) => Math.max(...shares(shape, size)),
  (shape, size) => shares(shape, size).reduce((sum, share) => sum + share, 0),
];

/** Undefined if it takes more steps than are left. */
function firstFit(
  order: readonly Shape[],
  preferred: Size,
  budget: { steps: number },
): readonly Bin[] | undefined {
  const bins: Bin[] = [];
  for (const shape of order) {
    let left = shape.pods;
    budget.steps -= bins.length + 1;
    if (budget.steps < 0) return undefined;
    for (const bin of bins) {
      if (left === 0) break;
      if (shape.templates.has(bin.size.template)) left -= fill(bin, shape, left);
    }
    const size = choose(shape, preferred);
    if (size === undefined) continue;
    while (left > 0) {
      const bin: Bin = { size, free: size.free.slice(), pods: new Map() };
      bins.push(bin);
      left -= fill(bin, shape, left);
    }
  }
  return bins;
}

/** The preferred size, if possible in its domain; otherwise the cheapest one. */
function choose({ sizes }: Shape, { option, template: { domain } }: Size): Size | undefined {
  const same = sizes.filter((size) => size.option === option);
  const cheapest = sizes.filter(({ option: { cost } }) => cost === sizes[0]?.option.cost);
  const choices = same.length > 0 ? same : cheapest;
  return choices.find(({ template }) => template.domain.name === domain.name) ?? choices[0];
}

function planOf(bins: readonly Bin[], sizes: readonly Size[]): PackingPlan {
  return {
    machines: bins.length,
    cost: bins.reduce((sum, bin) => sum + cheapestCost(bin, sizes), 0),
    machinePods: () =>
      bins.map(
        ({ pods }): MachinePods => new Map([...pods].map(([{ number }, count]) => [number, count])),
      ),
  };
}

/** Returns how many of the pods have a place in the bin. */
function fill({ pods, free }: Bin, shape: Shape, most: number): number {
  const { ids, amounts } = shape.group.pendingPod.demand;
  const count = ids.reduce(
    (least, id, i) => Math.min(least, Math.floor((free[id] ?? 0) / (amounts[i] ?? 1))),
    most,
  );
  if (count <= 0) return 0;
  for (const [i, id] of ids.entries()) free[id] = (free[id] ?? 0) - count * (amounts[i] ?? 0);
  pods.set(shape, (pods.get(shape) ?? 0) + count);
  return count;
}

/** Of the sizes that hold its pods and that all of them may use. */
function cheapestCost({ size, free, pods }: Bin, sizes: readonly Size[]): number {
  const load = size.free.map((amount, id) => amount - (free[id] ?? 0));
  const shapes = [...pods.keys()];
  const cheapest = sizes.find(
    (one) =>
      loadFits(load, one.free) && shapes.every(({ templates }) => templates.has(one.template)),
  );
  return (cheapest ?? size).option.cost;
}
