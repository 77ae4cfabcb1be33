// SPDX-License-Identifier: Apache-2.0
// Which pods share a machine, computed from their requests alone, for pods without constraints on other pods.
// Several heuristics for vector bin packing are tried, among them first-fit-decreasing with every size: without
// filters to run, each takes little time. The best result is then carried out pod by pod with all filters.

import type { ResourceDemand } from '../state/resource-names.ts';
import type { PodGroup } from './groups.ts';
import { type Load, loadWith } from './load.ts';
import type { MachineTemplate } from './machine-template.ts';
import type { SizeOption } from './size-options.ts';

/** The pods of one machine: how many of each group, by the group's number. */
export type MachinePods = ReadonlyMap<number, number>;

export interface GroupPods {
  readonly number: number;
  readonly group: PodGroup;
  /** How many pods of the group need a machine. */
  readonly pods: number;
}

export interface PlanCost {
  readonly machines: number;
  readonly cost: number;
}

export interface PackingPlan extends PlanCost {
  readonly machinePods: () => readonly MachinePods[];
}

/** The templates that pods with the same node rules may use, and those pods. */
export interface PackingTask {
  readonly templates: readonly MachineTemplate[];
  readonly groups: readonly GroupPods[];
}

/** Pods with equal requests. */
interface Shape {
  readonly demand: ResourceDemand;
  /** Amounts by the position of the resource in `Problem.resources`. */
  readonly amounts: readonly number[];
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly groups: readonly GroupPods[];
  readonly pods: number;
}

interface Problem {
  readonly templates: readonly MachineTemplate[];
  readonly shapes: readonly Shape[];
  readonly pods: number;
  readonly hasManySizes: boolean;
  /** Resource ids that any pod requests. */
  readonly resources: readonly number[];
}

/** A machine while it is filled: how many pods of each shape, and what is left. */
interface Filling {
  readonly pods: Map<Shape, number>;
  readonly free: number[];
}

/** With more sizes than this, only some of them are tried. */
export const MANY_SIZES = 12;
const TRIED_SIZES = 4;
/** About how many comparisons are made for a pod, and what placing it costs beside them. */
const MAX_STEPS_PER_POD = 10_000;
const STEPS_PER_PLACEMENT = 30;
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
 * Plans of which none is better than another one in both machines and cost. Empty if a pod is larger than every
 * size.
 */
export function findPackingPlans(tasks: readonly PackingTask[]): readonly PackingPlan[] {
  const [first, ...others] = tasks.map((task) => bestPlans(problemOf(task)));
  if (first === undefined) return [];
  if (others.length === 0) return first;
  // Of several independent tasks, only the plans with the least cost and with the fewest machines.
  return [compareByCost, compareByMachines].flatMap((compare) => {
    const parts = [first, ...others].flatMap((plans) => plans.toSorted(compare)[0] ?? []);
    return parts.length === tasks.length ? [combine(parts)] : [];
  });
}

function combine(parts: readonly PackingPlan[]): PackingPlan {
  return {
    machinePods: () => parts.flatMap(({ machinePods }) => machinePods()),
    machines: parts.reduce((sum, { machines }) => sum + machines, 0),
    cost: parts.reduce((sum, { cost }) => sum + cost, 0),
  };
}

function problemOf({ templates: all, groups }: PackingTask): Problem {
  // The domains of a pool offer the same sizes.
  const templates = [
    ...new Map(all.map((one) => [`${one.pool.name} ${one.sizeLabels}`, one])).values(),
  ];
  const byDemand = Map.groupBy(groups, ({ group }) => JSON.stringify(group.pendingPod.demand));
  const resources = [...new Set(groups.flatMap(({ group }) => group.pendingPod.demand.ids))];
  const shapes = [...byDemand.values()].flatMap((alike): readonly Shape[] => {
    const [first] = alike;
    if (first === undefined) return [];
    const { cpuMilli, memoryBytes, pendingPod } = first.group;
    const { demand } = pendingPod;
    const amounts = resources.map((id) => demand.amounts[demand.ids.indexOf(id)] ?? 0);
    const pods = alike.reduce((sum, one) => sum + one.pods, 0);
    return [{ demand, amounts, cpuMilli, memoryBytes, groups: alike, pods }];
  });
  const pods = shapes.reduce((sum, shape) => sum + shape.pods, 0);
  const hasManySizes = templates.some(({ sizeOptions }) => sizeOptions.list.length > MANY_SIZES);
  return { templates, shapes, pods, hasManySizes, resources };
}

/** The pods in the order in which they are placed, by the number of their shape. */
type Order = Uint32Array;

type SortKey = (shape: Shape, capacity: readonly number[]) => number;

const SORT_KEYS: readonly SortKey[] = [
  ({ cpuMilli }) => cpuMilli,
  ({ memoryBytes }) => memoryBytes,
  ({ amounts }, capacity) => Math.max(...shares(amounts, capacity)),
  ({ amounts }, capacity) => shares(amounts, capacity).reduce((sum, one) => sum + one, 0),
];

interface Tie {
  readonly of: (shape: Shape, index: number) => number;
  readonly isMixed: boolean;
}

/**
 * The order among pods with the same key: large first, small first, or mixed in several ways, because small
 * differences decide whether the last machine is needed.
 */
const TIES: readonly Tie[] = [
  { of: ({ cpuMilli, memoryBytes }) => cpuMilli + memoryBytes, isMixed: false },
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
  const front = new PlanFront();
  const [first, ...others] = TIES;
  const capacities = capacitiesOf(problem);
  const attempts = capacities.map((capacity) => new Attempt(problem, capacity, front));
  for (const attempt of attempts) if (first !== undefined) attempt.run(first);
  // With many sizes a machine hardly has space left: other orders would make little difference.
  if (problem.hasManySizes) return front.plans;
  // More orders only for the capacities that were best with the first.
  const promising = attempts.filter((attempt) => attempt.isPromising);
  for (const tie of others) for (const attempt of promising) attempt.run(tie);
  return front.plans;
}

/** Tries to fill machines of one capacity. */
class Attempt {
  readonly #problem: Problem;
  readonly #capacity: readonly number[];
  readonly #front: PlanFront;
  #best: PlanCost | undefined;

  constructor(problem: Problem, capacity: readonly number[], front: PlanFront) {
    this.#problem = problem;
    this.#capacity = capacity;
    this.#front = front;
  }

  run(tie: Tie): void {
    const { shapes, pods, hasManySizes } = this.#problem;
    for (const key of hasManySizes ? SORT_KEYS.slice(-1) : SORT_KEYS) {
      if (this.#front.steps > MAX_STEPS_PER_POD * pods) return;
      const order = orderOf(shapes, (shape) => key(shape, this.#capacity), tie);
      this.#add(firstFit(this.#problem, order, this.#capacity));
    }
    if (tie === TIES[0] && shapes.length < MAX_STEPS_PER_POD / 8)
      this.#add(fillOneByOne(this.#problem, this.#capacity));
  }

  #add(fillings: readonly Filling[] | undefined): void {
    if (fillings === undefined) return;
    const plan = planOf(fillings, this.#problem);
    this.#front.steps += this.#problem.pods * (STEPS_PER_PLACEMENT + fillings.length / 2);
    if (plan === undefined) return;
    this.#front.add(plan);
    if (this.#best === undefined || compareByCost(plan, this.#best) < 0) this.#best = plan;
  }

  get isPromising(): boolean {
    const best = this.#best;
    if (best === undefined) return false;
    return this.#front.plans.some(
      ({ cost, machines }) => best.cost <= cost * NEARLY && best.machines <= machines * NEARLY + 1,
    );
  }
}

function orderOf(shapes: readonly Shape[], key: (shape: Shape) => number, tie: Tie): Order {
  const keys = shapes.map(key);
  const entries: { readonly shape: number; readonly tie: number; readonly pods: number }[] = [];
  let index = 0;
  for (const [number, shape] of shapes.entries()) {
    // Equal pods stay together unless the order is mixed.
    const parts = tie.isMixed ? shape.pods : 1;
    for (let i = 0; i < parts; i += 1) {
      entries.push({ shape: number, tie: tie.of(shape, index), pods: shape.pods / parts });
      index += 1;
    }
  }
  entries.sort((a, b) => (keys[b.shape] ?? 0) - (keys[a.shape] ?? 0) || b.tie - a.tie);
  const order = new Uint32Array(shapes.reduce((sum, { pods }) => sum + pods, 0));
  let from = 0;
  for (const { shape, pods } of entries) {
    order.fill(shape, from, from + pods);
    from += pods;
  }
  return order;
}

/** Plans of which none is better than another one in both machines and cost. */
class PlanFront {
  plans: readonly PackingPlan[] = [];
  /** About how many comparisons were made. */
  steps = 0;

  add(plan: PackingPlan): void {
    if (!this.plans.every((other) => isDifferentTradeOff(plan, other))) return;
    this.plans = [...this.plans.filter((other) => !isImprovement(plan, other)), plan];
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

/** What the sizes leave for pods beside the daemon pods, by position of the resource. */
function capacitiesOf({ templates, resources }: Problem): readonly (readonly number[])[] {
  const all = templates.flatMap((template) =>
    spacedOut(template.sizeOptions.list).map(({ allocatable }) =>
      resources.map((id) => (allocatable[id] ?? 0) - (template.daemonLoad[id] ?? 0)),
    ),
  );
  return [...new Map(all.map((capacity) => [capacity.join(), capacity])).values()];
}

function spacedOut(options: readonly SizeOption[]): readonly SizeOption[] {
  if (options.length <= MANY_SIZES) return options;
  // Large ones, because a machine gets the smallest size that holds its pods.
  return Array.from({ length: TRIED_SIZES }, (_, i) =>
    options.at(Math.floor((options.length * (i + 1)) / TRIED_SIZES) - 1),
  ).filter((option) => option !== undefined);
}

/** Each pod into the first machine with space. */
function firstFit(
  { shapes }: Problem,
  order: Order,
  capacity: readonly number[],
): readonly Filling[] | undefined {
  const fillings: Filling[] = [];
  let last: Shape | undefined;
  let from = 0;
  for (const number of order) {
    const shape = shapes[number];
    if (shape === undefined) continue;
    // Machines that had no space for an equal pod still have none.
    if (shape !== last) from = 0;
    last = shape;
    while (from < fillings.length && !fits(shape, fillings[from]?.free)) from += 1;
    const filling = fillings[from] ?? { pods: new Map<Shape, number>(), free: [...capacity] };
    if (from === fillings.length) {
      if (!fits(shape, filling.free)) return undefined;
      fillings.push(filling);
    }
    put(shape, filling);
  }
  return fillings;
}

function fits({ amounts }: Shape, free: readonly number[] = []): boolean {
  for (let i = 0; i < amounts.length; i += 1) {
    const amount = amounts[i] ?? 0;
    if (amount > 0 && amount > (free[i] ?? 0)) return false;
  }
  return true;
}

function put(shape: Shape, { pods, free }: Filling, count = 1): void {
  const { amounts } = shape;
  for (let i = 0; i < amounts.length; i += 1) free[i] = (free[i] ?? 0) - count * (amounts[i] ?? 0);
  pods.set(shape, (pods.get(shape) ?? 0) + count);
}

/** How many pods of the shape fit. */
function room({ amounts }: Shape, free: readonly number[]): number {
  let count = Number.MAX_SAFE_INTEGER;
  for (let i = 0; i < amounts.length; i += 1) {
    const amount = amounts[i] ?? 0;
    if (amount > 0) count = Math.min(count, Math.floor((free[i] ?? 0) / amount));
  }
  return count;
}

/** A machine with space for many pods gets several equal ones at a time. */
const PARTS_OF_ROOM = 24;

/**
 * One machine after the other, each with the pods that are most like the space that it has left: their dot
 * product is the largest.
 */
function fillOneByOne(
  { shapes }: Problem,
  capacity: readonly number[],
): readonly Filling[] | undefined {
  const waiting = shapes.map((shape) => ({ shape, pods: shape.pods }));
  const fillings: Filling[] = [];
  while (waiting.length > 0) {
    const filling = { pods: new Map<Shape, number>(), free: [...capacity] };
    for (;;) {
      const at = mostAlike(waiting, filling.free, capacity);
      const next = waiting[at];
      if (next === undefined) break;
      const count = Math.ceil(Math.min(next.pods, room(next.shape, filling.free)) / PARTS_OF_ROOM);
      put(next.shape, filling, count);
      next.pods -= count;
      if (next.pods === 0) waiting.splice(at, 1);
    }
    if (filling.pods.size === 0) return undefined;
    fillings.push(filling);
  }
  return fillings;
}

/** The index of the shape; -1 if none fits. */
function mostAlike(
  waiting: readonly { readonly shape: Shape }[],
  free: readonly number[],
  capacity: readonly number[],
): number {
  let best = -1;
  let most = -1;
  for (let i = 0; i < waiting.length; i += 1) {
    const product = dotProduct(waiting[i]?.shape.amounts ?? [], free, capacity);
    if (product > most) {
      best = i;
      most = product;
    }
  }
  return best;
}

/** Negative if the pod does not fit. */
function dotProduct(
  amounts: readonly number[],
  free: readonly number[],
  capacity: readonly number[],
): number {
  let product = 0;
  for (let i = 0; i < amounts.length; i += 1) {
    const amount = amounts[i] ?? 0;
    const left = free[i] ?? 0;
    if (amount > left) return -1;
    if (amount > 0) product += (amount * left) / (capacity[i] ?? 1) ** 2;
  }
  return product;
}

function shares(amounts: readonly number[], capacity: readonly number[]): readonly number[] {
  return amounts.map((amount, i) => amount / Math.max(1, capacity[i] ?? 0));
}

/** Each machine has the cheapest size that holds its pods. Undefined if one has none. */
function planOf(fillings: readonly Filling[], { templates }: Problem): PackingPlan | undefined {
  let cost = 0;
  for (const { pods } of fillings) {
    const cheapest = cheapestFor(pods, templates);
    if (cheapest === undefined) return undefined;
    cost += cheapest;
  }
  return { machines: fillings.length, cost, machinePods: () => podsOfMachines(fillings) };
}

function cheapestFor(
  pods: ReadonlyMap<Shape, number>,
  templates: readonly MachineTemplate[],
): number | undefined {
  const costs = templates.flatMap(({ sizeOptions, daemonLoad }) => {
    let load: Load = daemonLoad;
    for (const [{ demand }, count] of pods) load = loadWith(times(demand, count), load);
    return sizeOptions.cheapestFor(load, 0)?.cost ?? [];
  });
  return costs.length === 0 ? undefined : Math.min(...costs);
}

function times({ ids, amounts }: ResourceDemand, count: number): ResourceDemand {
  return { ids, amounts: amounts.map((amount) => amount * count) };
}

/** Distributes the pods of each shape to the machines, group by group. */
function podsOfMachines(fillings: readonly Filling[]): readonly MachinePods[] {
  const queues = new Map<Shape, QueuedPods[]>();
  return fillings.map(({ pods }) => {
    const machine = new Map<number, number>();
    for (const [shape, count] of pods) {
      const queue =
        queues.get(shape) ?? shape.groups.map((one) => ({ number: one.number, left: one.pods }));
      queues.set(shape, queue);
      takePods(queue, count, machine);
    }
    return machine;
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
