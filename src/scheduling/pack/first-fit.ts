// SPDX-License-Identifier: Apache-2.0
// Heuristics for vector bin packing with machines of one capacity. Equal machines are filled together, so that the
// time depends on how many kinds of pods there are rather than on how many pods.

/** Pods with equal requests. */
export interface Shape {
  /** Amounts by the position of the resource. */
  readonly amounts: readonly number[];
  readonly pods: number;
}

/** The pods of one shape in a machine, and those that were put there before. */
interface PodsInside<S extends Shape> {
  readonly shape: S;
  readonly count: number;
  readonly before: PodsInside<S> | undefined;
}

/** Equal machines, and what is left in each. */
export interface Filling<S extends Shape> {
  machines: number;
  readonly free: readonly number[];
  readonly inside: PodsInside<S> | undefined;
  next: Filling<S> | undefined;
}

export interface Fillings<S extends Shape> {
  readonly fillings: readonly Filling<S>[];
  /** About how many comparisons were made. */
  readonly steps: number;
}

/** Equal pods that are placed one after the other. */
export interface OrderPart<S extends Shape> {
  readonly shape: S;
  readonly pods: number;
}

/** The smallest amount of each resource over all shapes. A machine with less is not looked at again. */
export function smallestAmounts(shapes: readonly Shape[]): readonly number[] {
  const [first] = shapes;
  if (first === undefined) return [];
  return first.amounts.map((_, i) => Math.min(...shapes.map(({ amounts }) => amounts[i] ?? 0)));
}

/** Each pod into the first machine with space. Undefined if a pod is larger than the capacity. */
export function firstFit<S extends Shape>(
  order: readonly OrderPart<S>[],
  capacity: readonly number[],
  smallest: readonly number[],
): Fillings<S> | undefined {
  const list = new MachineList<S>(smallest);
  for (const { shape, pods } of order) {
    const left = list.fillOpen(shape, pods);
    if (left > 0 && !list.open(shape, left, capacity)) return undefined;
  }
  return { fillings: list.all(), steps: list.steps };
}

/** Machines in the order in which they were opened. */
class MachineList<S extends Shape> {
  readonly #smallest: readonly number[];
  readonly #closed: Filling<S>[] = [];
  readonly #head: Filling<S> = { machines: 0, free: [], inside: undefined, next: undefined };
  #last: Filling<S> = this.#head;
  steps = 0;

  constructor(smallest: readonly number[]) {
    this.#smallest = smallest;
  }

  /** Returns how many pods found no space. */
  fillOpen(shape: S, pods: number): number {
    let left = pods;
    this.#last = this.#head;
    for (let at = this.#head.next; at !== undefined && left > 0; at = this.#last.next) {
      this.steps += 1;
      if (fits(shape, at.free)) left -= this.#fill(shape, left, at);
      else this.#last = at;
    }
    return left;
  }

  /** Fills the machines that follow `#last`, and returns how many pods they took. */
  #fill(shape: S, left: number, at: Filling<S>): number {
    const each = room(shape, at.free);
    const full = Math.min(at.machines, Math.floor(left / each));
    const rest = full === at.machines ? 0 : left - full * each;
    this.#last.next = at.next;
    if (full > 0) this.#insert(withPods(shape, each, at), full);
    if (rest > 0) this.#insert(withPods(shape, rest, at), 1);
    const untouched = at.machines - full - (rest > 0 ? 1 : 0);
    if (untouched > 0) this.#insert(at, untouched);
    return full * each + rest;
  }

  /** Opens machines at the end of the list. Returns false if a pod is larger than the capacity. */
  open(shape: S, pods: number, capacity: readonly number[]): boolean {
    if (!fits(shape, capacity)) return false;
    const each = room(shape, capacity);
    const empty = { machines: 1, free: capacity, inside: undefined, next: undefined };
    const full = Math.floor(pods / each);
    const rest = pods - full * each;
    if (full > 0) this.#insert(withPods(shape, each, empty), full);
    if (rest > 0) this.#insert(withPods(shape, rest, empty), 1);
    return true;
  }

  #insert(filling: Filling<S>, machines: number): void {
    this.steps += 1;
    filling.machines = machines;
    if (filling.free.some((left, i) => left < (this.#smallest[i] ?? 0))) {
      this.#closed.push(filling);
      return;
    }
    filling.next = this.#last.next;
    this.#last.next = filling;
    this.#last = filling;
  }

  all(): readonly Filling<S>[] {
    const all = [...this.#closed];
    for (let at = this.#head.next; at !== undefined; at = at.next) all.push(at);
    return all;
  }
}

function withPods<S extends Shape>(
  shape: S,
  count: number,
  { free, inside }: Filling<S>,
): Filling<S> {
  return {
    machines: 1,
    free: free.map((left, i) => left - count * (shape.amounts[i] ?? 0)),
    inside: { shape, count, before: inside },
    next: undefined,
  };
}

/** How many pods of each shape one of the machines holds. */
export function podsInside<S extends Shape>({ inside }: Filling<S>): ReadonlyMap<S, number> {
  const pods = new Map<S, number>();
  for (let at = inside; at !== undefined; at = at.before)
    pods.set(at.shape, (pods.get(at.shape) ?? 0) + at.count);
  return pods;
}

function fits({ amounts }: Shape, free: readonly number[]): boolean {
  for (let i = 0; i < amounts.length; i += 1) {
    const amount = amounts[i] ?? 0;
    if (amount > 0 && amount > (free[i] ?? 0)) return false;
  }
  return true;
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
 * product is the largest. Undefined if a pod is larger than the capacity.
 */
export function fillOneByOne<S extends Shape>(
  shapes: readonly S[],
  capacity: readonly number[],
): Fillings<S> | undefined {
  let waiting = shapes.map((shape) => ({ shape, pods: shape.pods, taken: 0 }));
  const fillings: Filling<S>[] = [];
  let steps = 0;
  while (waiting.length > 0) {
    let filling: Filling<S> = { machines: 1, free: capacity, inside: undefined, next: undefined };
    for (;;) {
      steps += waiting.length;
      const next = mostAlike(waiting, filling.free, capacity);
      if (next === undefined) break;
      const left = next.pods - next.taken;
      const count = Math.ceil(Math.min(left, room(next.shape, filling.free)) / PARTS_OF_ROOM);
      filling = withPods(next.shape, count, filling);
      next.taken += count;
    }
    if (filling.inside === undefined) return undefined;
    // As many equal machines as there are pods for.
    const taken = waiting.filter((one) => one.taken > 0);
    const machines = Math.min(...taken.map((one) => Math.floor(one.pods / one.taken)));
    for (const one of taken) {
      one.pods -= one.taken * machines;
      one.taken = 0;
    }
    fillings.push({ ...filling, machines });
    waiting = waiting.filter(({ pods }) => pods > 0);
  }
  return { fillings, steps };
}

interface WaitingPods<S extends Shape> {
  readonly shape: S;
  pods: number;
  /** How many of them are in the machine that is being filled. */
  taken: number;
}

function mostAlike<S extends Shape>(
  waiting: readonly WaitingPods<S>[],
  free: readonly number[],
  capacity: readonly number[],
): WaitingPods<S> | undefined {
  let best: WaitingPods<S> | undefined;
  let most = -1;
  for (const one of waiting) {
    if (one.taken === one.pods) continue;
    const product = dotProduct(one.shape.amounts, free, capacity);
    if (product > most) {
      best = one;
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
