// SPDX-License-Identifier: Apache-2.0
// Which pods share a machine, computed from their requests and node rules alone, as if they had no other constraints.
// Several heuristics for vector bin packing are tried, among them first-fit-decreasing with every size: without
// filters to run, each takes little time. The best result is then carried out pod by pod with all filters.

import type { ResourceDemand } from '../state/resource-names.ts';
import {
  type Filling,
  type Fillings,
  fillOneByOne,
  firstFit,
  type OrderPart,
  podsInside,
  type Shape,
  smallestAmounts,
} from './first-fit.ts';
import type { PodGroup } from './groups.ts';
import { loadWith } from './load.ts';
import type { MachineTemplate } from './machine-template.ts';
import { mixedFirstFits } from './mixed-first-fit.ts';
import { isSizeRange } from './offer.ts';
import type { GroupPods, MachinePods, PackingPlan, PackingTask, PlanCost } from './packing-task.ts';
import type { Weights } from './weights.ts';

/** Pods with equal requests, of one or more groups. */
interface GroupedShape extends Shape {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly groups: readonly GroupPods[];
}

interface Problem {
  readonly templates: readonly MachineTemplate[];
  readonly shapes: readonly GroupedShape[];
  readonly smallest: readonly number[];
  /** Resource ids that any pod requests. */
  readonly resources: readonly number[];
  readonly hasManySizes: boolean;
  /** Whether only the cost matters, not the number of machines. */
  readonly isPriced: boolean;
  readonly maxSteps: number;
  /** A better plan is not looked for. */
  readonly goodEnough: PlanCost;
}

/** How many capacities are tried with other orders than the first. */
const PROMISING = 12;
/** With more sizes than this, a plan that costs at most `TOLERANCE` more than the lower bound is good enough. */
export const MANY_SIZES = 64;
const TOLERANCE = 0.02;
/** About how many comparisons are made in all, or for each pod, and how many take as long as sorting a shape. */
const MAX_STEPS = 50_000_000;
const MAX_STEPS_PER_POD = 10_000;
const STEPS_PER_SORTED_SHAPE = 15;
/** Its multiples, without their whole parts, are evenly distributed. */
const GOLDEN_RATIO = 0.618_033_988_75;
/** How much worse than the best plan a capacity may be to be tried with other orders. */
const NEARLY = 1.05;

/** Whether only requests and node rules decide where its pods can run. */
export function isPlain({ pendingPod }: PodGroup): boolean {
  const { pod, affinityCounters, antiAffinityCounters, spreadChecks } = pendingPod;
  return (
    affinityCounters.length === 0 &&
    antiAffinityCounters.length === 0 &&
    spreadChecks.length === 0 &&
    pod.hostPorts.length === 0 &&
    pod.volumes.length === 0 &&
    pod.preferredNodes.length === 0
  );
}

/**
 * Plans with few machines and little cost. Empty if a pod is larger than every size.
 */
export function findPackingPlans(
  tasks: readonly PackingTask[],
  { isPriced }: Pick<Weights, 'isPriced'>,
): readonly PackingPlan[] {
  const mixed = mixedFirstFits(tasks);
  const [first, ...others] = tasks.map((task) => bestPlans(problemOf(task, isPriced)));
  if (first === undefined) return [];
  if (others.length === 0) return [...first, ...mixed];
  // Of several tasks, only the plans with the least cost and with the fewest machines.
  const separate = [compareByCost, compareByMachines].flatMap((compare) => {
    const parts = [first, ...others].flatMap((plans) => plans.toSorted(compare)[0] ?? []);
    return parts.length === tasks.length ? [combine(parts)] : [];
  });
  return [...separate, ...mixed];
}

function combine(parts: readonly PackingPlan[]): PackingPlan {
  return {
    machinePods: () => parts.flatMap(({ machinePods }) => machinePods()),
    machines: parts.reduce((sum, { machines }) => sum + machines, 0),
    cost: parts.reduce((sum, { cost }) => sum + cost, 0),
  };
}

function problemOf({ templates: all, groups }: PackingTask, isPriced: boolean): Problem {
  // The domains of a pool offer the same sizes.
  const templates = [
    ...new Map(all.map((one) => [`${one.pool.name} ${one.sizeLabels}`, one])).values(),
  ];
  const byDemand = Map.groupBy(groups, ({ group }) => JSON.stringify(group.pendingPod.demand));
  const resources = [...new Set(groups.flatMap(({ group }) => group.pendingPod.demand.ids))];
  const shapes = [...byDemand.values()].flatMap((alike): readonly GroupedShape[] => {
    const [first] = alike;
    if (first === undefined) return [];
    const { cpuMilli, memoryBytes, pendingPod } = first.group;
    const { demand } = pendingPod;
    const amounts = resources.map((id) => demand.amounts[demand.ids.indexOf(id)] ?? 0);
    const pods = alike.reduce((sum, one) => sum + one.pods, 0);
    return [{ amounts, cpuMilli, memoryBytes, groups: alike, pods }];
  });
  const pods = shapes.reduce((sum, shape) => sum + shape.pods, 0);
  const hasManySizes = templates.some(({ sizeOptions }) => sizeOptions.list.length > MANY_SIZES);
  const bound = lowerBound(templates, resources, shapes);
  return {
    templates,
    shapes,
    smallest: smallestAmounts(shapes),
    resources,
    hasManySizes,
    isPriced,
    maxSteps: Math.max(MAX_STEPS, MAX_STEPS_PER_POD * pods),
    goodEnough: {
      cost: bound.cost * (1 + (hasManySizes ? TOLERANCE : EPSILON)),
      machines: isPriced ? Infinity : bound.machines,
    },
  };
}

/** No plan is better: each resource by itself, with the best size for it, as if machines could be divided. */
function lowerBound(
  templates: readonly MachineTemplate[],
  resources: readonly number[],
  shapes: readonly Shape[],
): PlanCost {
  // The list has some of the sizes of a range only.
  if (templates.some(({ pool }) => isSizeRange(pool.sizes))) return { machines: 0, cost: 0 };
  const bound = { machines: 0, cost: 0 };
  for (const [i, id] of resources.entries()) {
    const total = shapes.reduce((sum, { amounts, pods }) => sum + pods * (amounts[i] ?? 0), 0);
    let largest = 0;
    let price = Infinity;
    for (const { sizeOptions, daemonLoad } of templates) {
      for (const { allocatable, cost } of sizeOptions.list) {
        const amount = (allocatable[id] ?? 0) - (daemonLoad[id] ?? 0);
        if (amount <= 0) continue;
        largest = Math.max(largest, amount);
        price = Math.min(price, cost / amount);
      }
    }
    if (largest === 0) continue;
    bound.machines = Math.max(bound.machines, Math.ceil(total / largest));
    bound.cost = Math.max(bound.cost, total * price);
  }
  return bound;
}

/** The pods in the order in which they are placed. */
type Order = readonly OrderPart<GroupedShape>[];

type SortKey = (shape: GroupedShape, capacity: readonly number[]) => number;

const SORT_KEYS: readonly SortKey[] = [
  ({ cpuMilli }) => cpuMilli,
  ({ memoryBytes }) => memoryBytes,
  ({ amounts }, capacity) => Math.max(...shares(amounts, capacity)),
  ({ amounts }, capacity) => shares(amounts, capacity).reduce((sum, one) => sum + one, 0),
];

interface Tie {
  readonly of: (shape: GroupedShape, index: number) => number;
  readonly isMixed: boolean;
}

/**
 * The order among pods with the same key: large first, small first, or mixed in several ways, because small
 * differences decide whether the last machine is needed.
 */
const FIRST_TIE: Tie = {
  of: ({ cpuMilli, memoryBytes }) => cpuMilli + memoryBytes,
  isMixed: false,
};
const OTHER_TIES: readonly Tie[] = [
  { of: ({ cpuMilli, memoryBytes }) => -cpuMilli - memoryBytes, isMixed: false },
  ...[1, 2, 3, 4, 5, 6].map(
    (seed): Tie => ({
      of: (_, index) => scramble(index * 31 + seed),
      isMixed: true,
    }),
  ),
];

/** The same pseudo-random number in every run. */
function scramble(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 15), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

function bestPlans(problem: Problem): readonly PackingPlan[] {
  const front = new PlanFront(problem);
  const attempts: Attempt[] = [];
  for (const capacity of capacitiesOf(problem)) {
    const attempt = new Attempt(problem, capacity, front);
    attempts.push(attempt);
    attempt.run(FIRST_TIE);
    if (front.isDone) break;
  }
  if (front.isDone) return front.plans;
  // More heuristics only for the capacities that were best with the first order.
  const promising = attempts
    .filter((attempt) => attempt.isPromising)
    .toSorted((a, b) => compareByCost(a.best ?? WORST, b.best ?? WORST))
    .slice(0, PROMISING);
  // With many sizes a machine hardly has space left: mixed orders would make little difference.
  const ties = problem.hasManySizes ? OTHER_TIES.filter(({ isMixed }) => !isMixed) : OTHER_TIES;
  for (const tie of ties) for (const attempt of promising) attempt.run(tie);
  return front.plans;
}

const WORST: PlanCost = { machines: Infinity, cost: Infinity };

/** Tries to fill machines of one capacity. */
class Attempt {
  readonly #problem: Problem;
  readonly #capacity: readonly number[];
  readonly #front: PlanFront;
  best: PlanCost | undefined;

  constructor(problem: Problem, capacity: readonly number[], front: PlanFront) {
    this.#problem = problem;
    this.#capacity = capacity;
    this.#front = front;
  }

  run(tie: Tie): void {
    const { shapes, smallest } = this.#problem;
    for (const key of SORT_KEYS) {
      if (this.#front.isDone) return;
      const order = orderOf(shapes, (shape) => key(shape, this.#capacity), tie);
      this.#front.steps += STEPS_PER_SORTED_SHAPE * order.length;
      this.#add(firstFit(order, this.#capacity, smallest));
    }
    if (tie === FIRST_TIE && !this.#front.isDone && shapes.length < MAX_STEPS_PER_POD / 8)
      this.#add(fillOneByOne(shapes, this.#capacity));
  }

  #add(found: Fillings<GroupedShape> | undefined): void {
    if (found === undefined) return;
    this.#front.steps += found.steps;
    const plan = planOf(found.fillings, this.#capacity, this.#problem);
    if (plan === undefined) return;
    this.#front.add(plan);
    if (this.best === undefined || compareByCost(plan, this.best) < 0) this.best = plan;
  }

  get isPromising(): boolean {
    const { best } = this;
    if (best === undefined) return false;
    const { isPriced } = this.#problem;
    return this.#front.plans.some(
      ({ cost, machines }) =>
        best.cost <= cost * NEARLY && (isPriced || best.machines <= machines * NEARLY + 1),
    );
  }
}

function orderOf(
  shapes: readonly GroupedShape[],
  key: (shape: GroupedShape) => number,
  tie: Tie,
): Order {
  const entries: (OrderPart<GroupedShape> & { readonly key: number; readonly tie: number })[] = [];
  for (const shape of shapes) {
    // Equal pods stay together unless the order is mixed.
    const parts = tie.isMixed ? shape.pods : 1;
    const shapeKey = key(shape);
    for (let i = 0; i < parts; i += 1) {
      const pods = shape.pods / parts;
      entries.push({ shape, pods, key: shapeKey, tie: tie.of(shape, entries.length) });
    }
  }
  return entries.sort((a, b) => b.key - a.key || b.tie - a.tie);
}

/** Plans of which none is better than another one in both machines and cost. */
class PlanFront {
  plans: readonly PackingPlan[] = [];
  /** About how many comparisons were made. */
  steps = 0;
  readonly #problem: Pick<Problem, 'goodEnough' | 'maxSteps'>;
  #isGoodEnough = false;

  constructor(problem: Pick<Problem, 'goodEnough' | 'maxSteps'>) {
    this.#problem = problem;
  }

  /** Whether more attempts are useless, or would take too long. */
  get isDone(): boolean {
    return this.#isGoodEnough || this.steps > this.#problem.maxSteps;
  }

  add(plan: PackingPlan): void {
    if (!this.plans.every((other) => isDifferentTradeOff(plan, other))) return;
    this.plans = [...this.plans.filter((other) => !isImprovement(plan, other)), plan];
    const { cost, machines } = this.#problem.goodEnough;
    if (plan.cost <= cost && plan.machines <= machines) this.#isGoodEnough = true;
  }
}

/** Whether the plan is better than the other one in machines or in cost. */
function isDifferentTradeOff(plan: PlanCost, other: PlanCost): boolean {
  return plan.machines < other.machines || compareCosts(plan, other) < 0;
}

/** Relative, because costs are sums of fractions. */
const EPSILON = 1e-9;

function compareCosts(one: PlanCost, other: PlanCost): number {
  const difference = one.cost - other.cost;
  return Math.abs(difference) <= EPSILON * Math.abs(other.cost) ? 0 : difference;
}

export function compareByCost(one: PlanCost, other: PlanCost): number {
  return compareCosts(one, other) || one.machines - other.machines;
}

export function compareByMachines(one: PlanCost, other: PlanCost): number {
  return one.machines - other.machines || compareCosts(one, other);
}

/** Better in machines or cost, and not worse in the other. */
export function isImprovement(one: PlanCost, other: PlanCost): boolean {
  const cost = compareCosts(one, other);
  const machines = one.machines - other.machines;
  return cost <= 0 && machines <= 0 && (cost < 0 || machines < 0);
}

/**
 * What the sizes leave for pods beside the daemon pods, by position of the resource: the largest first, then others
 * that are far apart, because the search may end before the last one.
 */
function* capacitiesOf({ templates, resources }: Problem): Generator<readonly number[]> {
  const sizes = templates
    .flatMap(({ sizeOptions, daemonLoad }) =>
      sizeOptions.list.toReversed().map(({ allocatable }) => ({ allocatable, daemonLoad })),
    )
    .map((size, i) => ({ ...size, rank: (i * GOLDEN_RATIO) % 1 }))
    .sort((a, b) => a.rank - b.rank);
  const known = new Set<string>();
  for (const { allocatable, daemonLoad } of sizes) {
    const capacity = resources.map((id) => (allocatable[id] ?? 0) - (daemonLoad[id] ?? 0));
    const key = capacity.join();
    if (!known.has(key)) yield capacity;
    known.add(key);
  }
}

function shares(amounts: readonly number[], capacity: readonly number[]): readonly number[] {
  return amounts.map((amount, i) => amount / Math.max(1, capacity[i] ?? 0));
}

/** Each machine has the cheapest size that holds its pods. Undefined if one has none. */
function planOf(
  fillings: readonly Filling<GroupedShape>[],
  capacity: readonly number[],
  problem: Problem,
): PackingPlan | undefined {
  let cost = 0;
  let machines = 0;
  for (const filling of fillings) {
    const amounts = capacity.map((amount, i) => amount - (filling.free[i] ?? 0));
    const cheapest = cheapestFor({ ids: problem.resources, amounts }, problem);
    if (cheapest === undefined) return undefined;
    cost += filling.machines * cheapest;
    machines += filling.machines;
  }
  return { machines, cost, machinePods: () => podsOfMachines(fillings) };
}

function cheapestFor(demand: ResourceDemand, { templates }: Problem): number | undefined {
  let least: number | undefined;
  for (const { sizeOptions, daemonLoad } of templates) {
    const cost = sizeOptions.cheapestFor(loadWith(demand, daemonLoad), 0)?.cost;
    if (cost !== undefined && (least === undefined || cost < least)) least = cost;
  }
  return least;
}

/** Distributes the pods of each shape to the machines, group by group. */
function podsOfMachines(fillings: readonly Filling<GroupedShape>[]): readonly MachinePods[] {
  const queues = new Map<Shape, QueuedPods[]>();
  return fillings.flatMap((filling) => {
    const pods = podsInside(filling);
    return Array.from({ length: filling.machines }, () => {
      const machine = new Map<number, number>();
      for (const [shape, count] of pods) {
        const queue =
          queues.get(shape) ?? shape.groups.map((one) => ({ number: one.number, left: one.pods }));
        queues.set(shape, queue);
        takePods(queue, count, machine);
      }
      return machine;
    });
  });
}

interface QueuedPods {
  readonly number: number;
  left: number;
}

function takePods(queue: QueuedPods[], count: number, machine: Map<number, number>): void {
  let left = count;
  for (let first = queue[0]; first !== undefined && left > 0; first = queue[0]) {
    const taken = Math.min(left, first.left);
    machine.set(first.number, (machine.get(first.number) ?? 0) + taken);
    first.left -= taken;
    left -= taken;
    if (first.left === 0) queue.shift();
  }
}
