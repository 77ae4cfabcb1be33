// SPDX-License-Identifier: Apache-2.0
// Searches machines that fewer new ones can replace: sets of growing size are packed onto the other nodes and new machines.

import type { MachineSize } from '../model/machine.ts';
import { pricePerHour } from '../pools/index.ts';
import { type Packing, type PlannedMachine, withoutNodes } from '../scheduling/index.ts';
import { isLeftOnNode } from './eviction-rules.ts';
import { isPlaceholder } from './headroom.ts';
import type { ScalingHost, ScalingInput, ScalingMachine, ScalingSettings } from './input.ts';
import {
  hostKey,
  type PoolState,
  poolStates,
  sizeOfCapacity,
  withinBatches,
} from './pool-offers.ts';
import type { Candidate } from './removal-candidate.ts';
import type { Situation } from './replacement.ts';
import { areSurelyDrainable, findDrainable } from './replacement-drains.ts';
import { byLargestPod, type Order, ordersOf, setSizes } from './replacement-sets.ts';
import { packPods, type ScaleUp } from './scale-up.ts';

export interface Replacement {
  /** Fewer than the machines they replace. */
  readonly machines: readonly PlannedMachine[];
  /** In the order in which they are drained. */
  readonly replaced: readonly Candidate[];
}

/** More machines than a scale-up for the same pods would need are tolerated: one, or 5 %. */
const TOLERATED_RATIO = 1.05;
/** A machine costs more than its capacity: DaemonSets, the system reserve, an address. */
const MAX_PRICE_RATIO = 1.2;

const MAX_CONSIDERED = 100;
/** How often machines are left out whose pods would get no new one. */
const MAX_ROUNDS = 3;
/** How many of the sets that are possible are checked again. */
const MAX_CHECKED = 10;
/** How many pods are packed or moved in one search. Reading so many nodes costs as much as packing a pod. */
const MAX_WORK = 20_000;
const NODES_PER_POD = 10;
/** Predicting where a pod is scheduled costs more than packing it. */
const PACKED_PER_MOVED = 2;

export function findReplacement(
  input: ScalingInput,
  { states, up, down }: Situation,
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

interface PackRequest {
  readonly input: ScalingInput;
  readonly states: ReadonlyMap<string, PoolState>;
}

class ReplacementSearch {
  readonly #input: ScalingInput;
  readonly #states: ReadonlyMap<string, PoolState>;
  readonly #up: ScaleUp;
  readonly #tried = new Set<string>();
  #work = 0;

  constructor(input: ScalingInput, states: ReadonlyMap<string, PoolState>, up: ScaleUp) {
    this.#input = input;
    this.#states = withinBatches(states);
    this.#up = up;
  }

  /** By ascending utilization. All sets are tried: the smallest one that is possible would be followed by many others. */
  find(candidates: Order): Replacement | undefined {
    const tooMany = this.#findTooMany(candidates);
    const replaceable = tooMany.length > 0 ? tooMany : this.#ofLimitedPools(candidates);
    const { replacementSearches = 0 } = this.#input.memory;
    const orders = ordersOf(replaceable, replacementSearches);
    const found: Replacement[] = [];
    for (const size of setSizes(orders, replacementSearches)) {
      for (const order of orders.filter(({ length }) => length >= size)) {
        for (const settings of variantsOf(this.#input.settings))
          found.push(...this.#replace(order, size, settings));
      }
    }
    return found
      .toSorted(compareReplacements)
      .slice(0, MAX_CHECKED)
      .find(({ machines, replaced: candidates }) =>
        areSurelyDrainable(this.#input, this.#up.cluster, { machines, candidates }),
      );
  }

  /**
   * Those of which a scale-up for the same pods would need at least two less, and 5 %, if they did not exist. Without those with pods
   * that would get no machine: their limits or rules allow them to stay where they are, but not to be placed anew.
   */
  #findTooMany(candidates: Order): Order {
    let left = candidates;
    for (let round = 0; round < MAX_ROUNDS && left.length > 1; round += 1) {
      const { machines, unplaced } = this.#packAnew(left);
      const few = Math.max(machines.length + 1, machines.length * TOLERATED_RATIO);
      if (unplaced.length === 0) return left.length > few ? left : [];
      const uids = new Set(unplaced.map(({ pod }) => pod.uid));
      left = left.filter(({ pods }) => !pods.some(({ uid }) => uids.has(uid)));
    }
    return [];
  }

  /** As if these machines did not exist. */
  #packAnew(candidates: Order): Packing {
    const without = withoutMachines(this.#input, candidates);
    const states = poolStates(without);
    const packWith = (settings: ScalingSettings): Packing =>
      this.#pack(candidates, { input: { ...without, settings }, states });
    const [first = without.settings, ...others] = variantsOf(without.settings);
    let packing = packWith(first);
    for (const settings of others) if (packing.unplaced.length > 0) packing = packWith(settings);
    return packing;
  }

  /** Machines in the place of which their pool may add others, for pods that wait for its limits. */
  #ofLimitedPools(candidates: readonly Candidate[]): readonly Candidate[] {
    const limited = new Set(
      this.#up.unplaced
        .filter(({ pod }) => !isPlaceholder(pod))
        .flatMap(({ refusals }) => refusals)
        .flatMap(({ pool, limit }) => (limit?.of === pool ? [pool] : [])),
    );
    return candidates.filter(({ machine }) => limited.has(machine.pool));
  }

  /**
   * Adds machines for the pods of the first ones. Those are drained first, and then any others that can be drained: pods are
   * not scheduled as they are packed, but on the emptiest nodes.
   */
  #replace(order: Order, size: number, settings: ScalingSettings): readonly Replacement[] {
    if (this.#work > MAX_WORK) return [];
    const set = order.slice(0, size);
    const input = { ...this.#input, settings };
    const { machines } = this.#pack(set, { input, states: this.#states });
    if (machines.length === 0 || machines.length >= order.length) return [];
    return [[...byLargestPod(set), ...order.slice(size)], order].flatMap((candidates) => {
      const key = keyOf(machines, candidates);
      if (this.#tried.has(key)) return [];
      this.#tried.add(key);
      this.#work += sum(candidates.map(({ pods }) => pods.length)) * PACKED_PER_MOVED;
      const replaced = findDrainable(this.#input, this.#up.cluster, { machines, candidates });
      const found = { machines, replaced };
      return this.#isPossible(found) ? [found] : [];
    });
  }

  /** The pods of these machines on other nodes and on new machines. */
  #pack(replaced: Order, { input, states }: PackRequest): Packing {
    const { cluster } = this.#up;
    const names = replaced.map(({ node }) => node.name);
    const pods = names
      .flatMap((name) => cluster.podsOn(name))
      .filter((pod) => !isLeftOnNode(pod))
      .map((pod) => ({ ...pod, nodeName: '' }));
    this.#work += pods.length + cluster.nodes.length / NODES_PER_POD;
    return packPods(input, states, { cluster: withoutNodes(cluster, names), pods });
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

/** The limits of pools and hosts as if these machines did not exist, for any number of machines at a time. */
function withoutMachines(input: ScalingInput, replaced: readonly Candidate[]): ScalingInput {
  const machines = new Set<ScalingMachine>(replaced.map(({ machine }) => machine));
  const byHost = Map.groupBy(replaced, ({ machine: { placement } }) =>
    placement === undefined ? '' : hostKey({ region: placement.region, name: placement.host }),
  );
  return {
    ...input,
    machines: input.machines.filter((machine) => !machines.has(machine)),
    pools: input.pools.map((pool) => ({
      ...pool,
      freeIdentities: undefined,
      config: { ...pool.config, scaleUp: { ...pool.config.scaleUp, batchSize: Infinity } },
    })),
    hosts: input.hosts.map((host) => withCapacityOf(host, byHost.get(hostKey(host)) ?? [])),
  };
}

function withCapacityOf(host: ScalingHost, freed: readonly Candidate[]): ScalingHost {
  if (freed.length === 0) return host;
  const cpus = sum(freed.map(({ machine }) => machine.size.cpu));
  const diskBytes = sum(freed.map(({ machine }) => machine.size.diskBytes));
  const memoryBytes = sum(
    freed.map(
      ({ machine, state }) => machine.size.memoryBytes + state.pool.config.memoryOverheadBytes,
    ),
  );
  const pools = Object.entries(host.pools).map(([name, capacity]) => [
    name,
    {
      ...capacity,
      cpus: capacity.cpus + cpus,
      memoryBytes: capacity.memoryBytes + memoryBytes,
      diskBytes: capacity.diskBytes + diskBytes,
    },
  ]);
  return { ...host, pools: Object.fromEntries(pools) };
}

/** As pools are chosen for pending pods; or, unless the price matters most, the fewest machines. */
function variantsOf(settings: ScalingSettings): readonly ScalingSettings[] {
  if (settings.poolChoice === 'cheapest') return [settings];
  return [settings, { ...settings, poolChoice: 'fewest' }];
}

function gainOf({ machines, replaced }: Replacement): number {
  return replaced.length - machines.length;
}

/** How many machines are replaced for each that is saved. */
function effortOf(found: Replacement): number {
  return found.replaced.length / gainOf(found);
}

/** Less effort first; for the same, more machines at a time. */
function compareReplacements(left: Replacement, right: Replacement): number {
  return effortOf(left) - effortOf(right) || gainOf(right) - gainOf(left);
}

function keyOf(machines: readonly PlannedMachine[], candidates: Order): string {
  const added = machines.map(
    ({ pool, domain, size: { capacity } }) =>
      `${pool} ${domain} ${capacity.cpuMilli} ${capacity.memoryBytes}`,
  );
  const names = candidates.map(({ node }) => node.name);
  return [...added.toSorted(), ...names].join();
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
