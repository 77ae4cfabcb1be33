// SPDX-License-Identifier: Apache-2.0
// First-fit-decreasing for pods that may use different pools, and for pods that are too large for some sizes: a pod may share a
// machine with any other that may use its pool. Plans for one capacity, which is best for pods with equal rules, cannot do so.

import { loadWith } from './load.ts';
import type { MachineTemplate } from './machine-template.ts';
import { isSizeRange } from './offer.ts';
import type { GroupPods, MachinePods, PackingPlan, PackingTask } from './packing-task.ts';
import { loadFits, type SizeOption } from './size-options.ts';

/** With more sizes, these plans are not made. */
const MAX_SIZES = 24;
/** The same for the comparisons of pods with machines, which are at most about so many. */
const MAX_STEPS = 20_000_000;

interface Size {
  readonly template: MachineTemplate;
  readonly option: SizeOption;
  /** What is left beside the daemon pods, by resource id. */
  readonly free: readonly number[];
}

interface Shape extends GroupPods {
  /** Those that its pods may use and that hold one, the cheapest first. */
  readonly sizes: readonly Size[];
}

interface Bin {
  readonly size: Size;
  readonly free: number[];
  readonly pods: Map<number, number>;
}

/** One plan for each size, which is preferred wherever it may be used, and each order of the pods. */
export function mixedFirstFits(tasks: readonly PackingTask[]): readonly PackingPlan[] {
  const sizes = sizesOf(new Set(tasks.flatMap(({ templates }) => templates)));
  const groups = tasks.flatMap((task) => task.groups);
  const pods = groups.reduce((sum, one) => sum + one.pods, 0);
  const steps = sizes.length * KEYS.length * groups.length * pods;
  if (sizes.length > MAX_SIZES || steps > MAX_STEPS) return [];
  const shapes = tasks.flatMap((task) =>
    task.groups.map(
      (one): Shape => ({ ...one, sizes: sizes.filter((size) => holds(size, task.templates, one)) }),
    ),
  );
  // A plan without those that may use only a range of sizes would look better than it is.
  if (shapes.some((shape) => shape.sizes.length === 0)) return [];
  if (shapes.every((shape) => shape.sizes.length === sizes.length)) return [];
  return sizes.flatMap((preferred) =>
    KEYS.map((key) => firstFit(shapes, { preferred, key: (shape) => key(shape, preferred) })),
  );
}

function sizesOf(templates: ReadonlySet<MachineTemplate>): readonly Size[] {
  // The domains of a pool offer the same sizes.
  const distinct = new Map(
    [...templates].map((one) => [`${one.pool.name} ${one.sizeLabels}`, one]),
  );
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

function holds(
  { template, option }: Size,
  templates: readonly MachineTemplate[],
  { group }: GroupPods,
): boolean {
  const isAllowed = templates.some(
    ({ pool, sizeLabels }) => pool === template.pool && sizeLabels === template.sizeLabels,
  );
  const load = loadWith(group.pendingPod.demand, template.daemonLoad);
  return isAllowed && loadFits(load, option.allocatable);
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

function firstFit(
  shapes: readonly Shape[],
  { preferred, key }: { readonly preferred: Size; readonly key: (shape: Shape) => number },
): PackingPlan {
  const bins: Bin[] = [];
  for (const shape of shapes.toSorted((a, b) => key(b) - key(a))) {
    let left = shape.pods;
    for (const bin of bins) {
      if (left === 0) break;
      if (shape.sizes.some(({ template }) => template === bin.size.template))
        left -= fill(bin, shape, left);
    }
    const size = shape.sizes.includes(preferred) ? preferred : shape.sizes[0];
    if (size === undefined) continue;
    while (left > 0) {
      const bin: Bin = { size, free: size.free.slice(), pods: new Map() };
      bins.push(bin);
      left -= fill(bin, shape, left);
    }
  }
  return {
    machines: bins.length,
    cost: bins.reduce((sum, bin) => sum + cheapestCost(bin), 0),
    machinePods: () => bins.map(({ pods }): MachinePods => pods),
  };
}

/** Returns how many of the pods have a place in the bin. */
function fill({ pods, free }: Bin, { number, group }: Shape, most: number): number {
  const { ids, amounts } = group.pendingPod.demand;
  const count = ids.reduce(
    (least, id, i) => Math.min(least, Math.floor((free[id] ?? 0) / (amounts[i] ?? 1))),
    most,
  );
  if (count <= 0) return 0;
  for (const [i, id] of ids.entries()) free[id] = (free[id] ?? 0) - count * (amounts[i] ?? 0);
  pods.set(number, (pods.get(number) ?? 0) + count);
  return count;
}

/** Of the sizes of its pool that hold its pods. */
function cheapestCost({ size: { template, option }, free }: Bin): number {
  const load = option.allocatable.map((amount, id) => amount - (free[id] ?? 0));
  return template.sizeOptions.cheapestFor(load, 0)?.cost ?? option.cost;
}
