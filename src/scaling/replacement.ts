// SPDX-License-Identifier: Apache-2.0
// Can fewer new machines replace several that cannot be removed one by one? Free capacity may be spread so that the pods of
// no single node fit elsewhere. The new machines are created first. Then the replaced ones are removed like any others,
// each after its own proof.

import type { MachineSize } from '../model/machine.ts';
import type { Pod } from '../model/pod.ts';
import { pricePerHour } from '../pools/index.ts';
import {
  type Packing,
  type PlannedMachine,
  withExpectedNodes,
  withoutNodes,
} from '../scheduling/index.ts';
import { isLeftOnNode } from './eviction-rules.ts';
import { findLeavingNodes, isStaying } from './expected-nodes.ts';
import type { ScalingInput, ScalingSettings } from './input.ts';
import type { ScalingMemory } from './memory.ts';
import { type PoolState, sizeOfCapacity } from './pool-offers.ts';
import type { Candidate } from './removal-candidate.ts';
import type { ScaleDown } from './scale-down.ts';
import { packPods, type ScaleUp } from './scale-up.ts';
import { findWaitingPods } from './scheduling-risk.ts';

export interface Replacement {
  /** Fewer than the machines they replace. */
  readonly machines: readonly PlannedMachine[];
  readonly replaced: readonly Candidate[];
}

/** The cluster as the other parts of the decision have left it. */
interface Situation {
  readonly up: ScaleUp;
  readonly down: ScaleDown;
}

/** How long no machine may have been removed until a replacement has failed, beside the delay after an added machine. */
const STALLED_MS = 60 * 60_000;
/** When the next one may be planned after one that failed. */
const AFTER_FAILURE_MS = 6 * 60 * 60_000;

/** More machines than a scale-up for the same pods would need are tolerated: one, or 5 %. */
const TOLERATED_RATIO = 1.05;
/** How many machines are replaced at most for each that is saved. */
const MAX_REPLACED_PER_GAIN = 4;
/** A machine costs more than its capacity: DaemonSets, the system reserve, an address. */
const MAX_PRICE_RATIO = 1.2;

/** How many of the least utilized machines are replaced: of all pools, and of each pool. */
const SET_SIZES = [2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50];
const MAX_CONSIDERED = 100;
/** How often capacity is added for pods that would wait. */
const MAX_ROUNDS = 4;
/** How many pods are packed in one search. */
const MAX_WORK = 30_000;

/** What is left of the replacement in progress. */
export function followReplacement(input: ScalingInput): Partial<ScalingMemory> {
  const { machines, memory, now, pools } = input;
  const { replacement } = memory;
  if (replacement === undefined) return {};
  const delayMs = Math.max(0, ...pools.map(({ config }) => config.scaleDown.delayAfterAddMs));
  const present = new Set(machines.map(({ id }) => id));
  const staying = new Set(machines.filter(isStaying).map(({ id }) => id));
  const replaced = replacement.replaced.filter((id) => present.has(id));
  if (replaced.length === 0) return { replacement: undefined };
  const at = replaced.length < replacement.replaced.length ? now : replacement.at;
  const isStalled = now - at >= STALLED_MS + delayMs;
  const hasFailed = isStalled || !replacement.added.every((id) => staying.has(id));
  if (hasFailed) return { replacement: undefined, replacementAt: now + AFTER_FAILURE_MS };
  return { replacement: { ...replacement, at, replaced } };
}

/** Whether nothing else is in progress, and the last search is long enough ago. */
export function isReplacementDue(input: ScalingInput, { up, down }: Situation): boolean {
  const { now, memory, pending } = input;
  if (memory.replacement !== undefined || (memory.replacementAt ?? now) > now) return false;
  if (up.machines.length > 0 || up.expected.length > 0) return false;
  if (pending.length > up.unplaced.length + up.skipped.length) return false;
  if (findLeavingNodes(input).length > 0 || down.nextAt !== undefined) return false;
  return !down.refusals.some(({ code }) => code === 'TooManyUnready');
}

/** A search packs many pods, so that it is not repeated with every decision. */
export function nextSearchAt({ pools, now }: ScalingInput): number {
  return now + Math.max(0, ...pools.map(({ config }) => config.scaleDown.unneededTimeMs));
}

export function findReplacement(
  input: ScalingInput,
  states: ReadonlyMap<string, PoolState>,
  { up, down }: Situation,
): Replacement | undefined {
  const candidates = down.evictable
    .filter((candidate) => isSettled(candidate, input.now))
    .toSorted((left, right) => left.utilization.value - right.utilization.value)
    .slice(0, MAX_CONSIDERED);
  return new ReplacementSearch(input, states, up).find(candidates);
}

/** Whether it has had the same pods for as long as an unneeded machine is kept. */
function isSettled({ machine, pods, state }: Candidate, now: number): boolean {
  const times = pods.filter((pod) => !isLeftOnNode(pod)).map(({ createdAt }) => createdAt);
  const since = Math.max(machine.readySince ?? machine.requestedAt, ...times);
  return now - since >= state.pool.config.scaleDown.unneededTimeMs;
}

class ReplacementSearch {
  readonly #input: ScalingInput;
  readonly #states: ReadonlyMap<string, PoolState>;
  readonly #up: ScaleUp;
  #work = 0;

  constructor(input: ScalingInput, states: ReadonlyMap<string, PoolState>, up: ScaleUp) {
    this.#input = input;
    this.#states = states;
    this.#up = up;
  }

  /** By ascending utilization. */
  find(candidates: readonly Candidate[]): Replacement | undefined {
    if (!this.#areTooMany(candidates)) return undefined;
    const byPool = [...Map.groupBy(candidates, ({ machine }) => machine.pool).values()];
    const orders = byPool.length === 1 ? byPool : [candidates, ...byPool];
    for (const size of SET_SIZES) {
      for (const order of orders) {
        const found = order.length < size ? undefined : this.#replace(order.slice(0, size));
        if (found !== undefined) return found;
        if (this.#work > MAX_WORK) return undefined;
      }
    }
    return undefined;
  }

  /** Whether a scale-up for the same pods would need at least two machines less, and 5 %. */
  #areTooMany(candidates: readonly Candidate[]): boolean {
    if (candidates.length < 2) return false;
    const { machines, unplaced } = this.#pack(candidates, [], this.#input.settings);
    const few = Math.max(machines.length + 1, machines.length * TOLERATED_RATIO);
    return unplaced.length === 0 && candidates.length > few;
  }

  #replace(candidates: readonly Candidate[]): Replacement | undefined {
    for (const settings of variantsOf(this.#input.settings)) {
      const first = this.#tryReplace(candidates, settings);
      const found = first && this.#shrink(first, settings);
      if (found !== undefined && isWorthwhile(found)) return found;
    }
    return undefined;
  }

  /** Without the machines that can stay. The most utilized ones are tried first: they are often replaced by equal ones. */
  #shrink(found: Replacement, settings: ScalingSettings): Replacement {
    let least = found;
    for (const candidate of found.replaced.toReversed()) {
      const fewer = this.#tryReplace(
        least.replaced.filter((one) => one !== candidate),
        settings,
      );
      if (fewer !== undefined && gainOf(fewer) >= gainOf(least)) least = fewer;
    }
    return least;
  }

  /** Adds capacity until every pod would find a node where kube-scheduler would place it, too. */
  #tryReplace(replaced: readonly Candidate[], settings: ScalingSettings): Replacement | undefined {
    let more: readonly Pod[] = [];
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const { machines, unplaced } = this.#pack(replaced, more, settings);
      const found = { machines, replaced };
      if (unplaced.length > 0 || !this.#isPossible(found)) return undefined;
      const waiting = this.#findWaiting(found);
      if (waiting.length === 0) return found;
      more = [...more, ...waiting.map((pod) => twinOf(pod, round))];
    }
    return undefined;
  }

  /** The pods of these machines, and more, on other nodes and on new machines. */
  #pack(replaced: readonly Candidate[], more: readonly Pod[], settings: ScalingSettings): Packing {
    const { cluster } = this.#up;
    const names = replaced.map(({ node }) => node.name);
    const pods = [...names.flatMap((name) => cluster.podsOn(name)), ...more]
      .filter((pod) => !isLeftOnNode(pod))
      .map((pod) => ({ ...pod, nodeName: '' }));
    this.#work += pods.length;
    return packPods({ ...this.#input, settings }, this.#states, {
      cluster: withoutNodes(cluster, names),
      pods,
    });
  }

  #findWaiting({ machines, replaced }: Replacement): readonly Pod[] {
    const waiting = findWaitingPods(
      replaced.map(({ node }) => node.name),
      withExpectedNodes(
        this.#up.cluster,
        machines.map(({ node }) => node),
      ),
      {
        expendableBelow: this.#input.settings.expendablePriority,
        avoid: new Set(this.#input.unreadyNodes),
      },
    );
    return [...waiting.values()].flat();
  }

  #isPossible(found: Replacement): boolean {
    const isFewer = found.machines.length > 0 && gainOf(found) > 0;
    return isFewer && this.#isCheap(found) && this.#keepsMinimums(found);
  }

  #isCheap({ machines, replaced }: Replacement): boolean {
    const { pricing, poolChoice } = this.#input.settings;
    const priceOf = (pool: string, size: MachineSize): number => {
      const state = this.#states.get(pool);
      return state === undefined ? 0 : pricePerHour(state.pool.config, size, pricing);
    };
    const before = replaced.map(({ machine }) => priceOf(machine.pool, machine.size));
    const after = machines.map(({ pool, size }) => priceOf(pool, sizeOfCapacity(size.capacity)));
    return sum(after) <= sum(before) * (poolChoice === 'cheapest' ? 1 : MAX_PRICE_RATIO);
  }

  #keepsMinimums({ machines, replaced }: Replacement): boolean {
    return [...this.#states].every(([name, { members, limits }]) => {
      const removed = replaced.filter(({ machine }) => machine.pool === name).length;
      const added = machines.filter(({ pool }) => pool === name).length;
      return removed === 0 || members + added - removed >= limits.min;
    });
  }
}

/** As pools are chosen for pending pods; or, unless the price matters most, the fewest machines. */
function variantsOf(settings: ScalingSettings): readonly ScalingSettings[] {
  if (settings.poolChoice === 'cheapest') return [settings];
  return [settings, { ...settings, poolChoice: 'fewest' }];
}

function gainOf({ machines, replaced }: Replacement): number {
  return replaced.length - machines.length;
}

/** Whether few pods move for each machine that is saved. */
function isWorthwhile(found: Replacement): boolean {
  return found.replaced.length <= MAX_REPLACED_PER_GAIN * gainOf(found);
}

/** Another pod with the same requirements. */
function twinOf(pod: Pod, round: number): Pod {
  const suffix = `-${round}`;
  return { ...pod, name: pod.name + suffix, uid: pod.uid + suffix };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
