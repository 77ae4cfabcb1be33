// SPDX-License-Identifier: Apache-2.0
// Searches machines that fewer new ones can replace: sets of growing size are packed onto the other nodes and new machines.

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
import { isPlaceholder } from './headroom.ts';
import type { ScalingHost, ScalingInput, ScalingMachine, ScalingSettings } from './input.ts';
import { hostKey, type PoolState, poolStates, sizeOfCapacity } from './pool-offers.ts';
import type { Candidate } from './removal-candidate.ts';
import type { Situation } from './replacement.ts';
import { packPods, type ScaleUp } from './scale-up.ts';
import { findWaitingPods } from './scheduling-risk.ts';

export interface Replacement {
  /** Fewer than the machines they replace. */
  readonly machines: readonly PlannedMachine[];
  readonly replaced: readonly Candidate[];
}

/** More machines than a scale-up for the same pods would need are tolerated: one, or 5 %. */
const TOLERATED_RATIO = 1.05;
/** A machine costs more than its capacity: DaemonSets, the system reserve, an address. */
const MAX_PRICE_RATIO = 1.2;

/** How many machines are replaced; also all of an order. */
const SET_SIZES = [2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50];
const MAX_CONSIDERED = 100;
/** How often capacity is added for pods that would wait. */
const MAX_ROUNDS = 4;
/** How many pods are packed in one search. Reading so many nodes costs as much as packing a pod. */
const MAX_WORK = 20_000;
const NODES_PER_POD = 10;

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
  readonly more: readonly Pod[];
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

  /** By ascending utilization. All sets are tried: the smallest one that is possible would be followed by many others. */
  find(candidates: readonly Candidate[]): Replacement | undefined {
    const replaceable = this.#areTooMany(candidates)
      ? candidates
      : this.#ofLimitedPools(candidates);
    const placeable = this.#withPlaceablePods(replaceable);
    const orders = [
      ...ordersOf(replaceable),
      ...(placeable.length < replaceable.length ? ordersOf(placeable) : []),
    ];
    let best: Replacement | undefined;
    for (const size of setSizes(orders)) {
      for (const order of orders.filter(({ length }) => length >= size)) {
        for (const settings of variantsOf(this.#input.settings)) {
          const found = this.#replace(order.slice(0, size), settings);
          if (found === undefined) continue;
          if (best === undefined || isBetter(found, best)) best = found;
        }
      }
    }
    return best;
  }

  /** Whether a scale-up for the same pods would need at least two machines less, and 5 %, if these did not exist. */
  #areTooMany(candidates: readonly Candidate[]): boolean {
    if (candidates.length < 2) return false;
    const without = withoutMachines(this.#input, candidates);
    const states = poolStates(without);
    for (const settings of variantsOf(without.settings)) {
      const { machines, unplaced } = this.#pack(candidates, {
        input: { ...without, settings },
        states,
        more: [],
      });
      const few = Math.max(machines.length + 1, machines.length * TOLERATED_RATIO);
      if (unplaced.length === 0) return candidates.length > few;
    }
    return false;
  }

  /** Without those whose pods find no node even if all are replaced, because the only pool for them may not grow. */
  #withPlaceablePods(candidates: readonly Candidate[]): readonly Candidate[] {
    const { unplaced } = this.#pack(candidates, {
      input: this.#input,
      states: this.#states,
      more: [],
    });
    const uids = new Set(unplaced.map(({ pod }) => pod.uid));
    return candidates.filter(({ pods }) => !pods.some(({ uid }) => uids.has(uid)));
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

  #replace(candidates: readonly Candidate[], settings: ScalingSettings): Replacement | undefined {
    const found = this.#tryReplace(candidates, settings);
    return found && this.#shrink(found, settings);
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
    for (let round = 0; round < MAX_ROUNDS && this.#work <= MAX_WORK; round += 1) {
      const { machines, unplaced } = this.#pack(replaced, {
        input: { ...this.#input, settings },
        states: this.#states,
        more,
      });
      const found = { machines, replaced };
      if (unplaced.length > 0 || !this.#isPossible(found)) return undefined;
      const waiting = this.#findWaiting(found);
      if (waiting.length === 0) return found;
      more = [...more, ...waiting.map((pod) => twinOf(pod, round))];
    }
    return undefined;
  }

  /** The pods of these machines, and more, on other nodes and on new machines. */
  #pack(replaced: readonly Candidate[], { input, states, more }: PackRequest): Packing {
    const { cluster } = this.#up;
    const names = replaced.map(({ node }) => node.name);
    const pods = [...names.flatMap((name) => cluster.podsOn(name)), ...more]
      .filter((pod) => !isLeftOnNode(pod))
      .map((pod) => ({ ...pod, nodeName: '' }));
    this.#work += pods.length + cluster.nodes.length / NODES_PER_POD;
    return packPods(input, states, { cluster: withoutNodes(cluster, names), pods });
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

function setSizes(orders: readonly (readonly Candidate[])[]): readonly number[] {
  const all = orders.map(({ length }) => length).filter((length) => length > 1);
  return [...new Set([...SET_SIZES, ...all])].toSorted((left, right) => left - right);
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

/** Less effort; for the same, more machines at a time. */
function isBetter(found: Replacement, other: Replacement): boolean {
  return (effortOf(found) - effortOf(other) || gainOf(other) - gainOf(found)) < 0;
}

/** The least utilized machines first, of all pools and of each pool; the same machines by what they have left. */
function ordersOf(candidates: readonly Candidate[]): readonly (readonly Candidate[])[] {
  const byPool = [...Map.groupBy(candidates, ({ machine }) => machine.pool).values()];
  const orders = byPool.length === 1 ? byPool : [candidates, ...byPool];
  return [...orders, ...orders.map(byComplement)];
}

/** In turn the machine with the most CPU left, compared with its memory, and the one with the least. */
function byComplement(candidates: readonly Candidate[]): readonly Candidate[] {
  const sorted = candidates.toSorted(
    ({ utilization: left }, { utilization: right }) =>
      left.cpu - left.memory - (right.cpu - right.memory),
  );
  const half = Math.ceil(sorted.length / 2);
  const ends = sorted.slice(half).toReversed();
  return sorted.slice(0, half).flatMap((one, index) => [one, ...ends.slice(index, index + 1)]);
}

/** Another pod with the same requirements. */
function twinOf(pod: Pod, round: number): Pod {
  const suffix = `-${round}`;
  return { ...pod, name: pod.name + suffix, uid: pod.uid + suffix };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
