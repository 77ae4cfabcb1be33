// SPDX-License-Identifier: Apache-2.0
import { formatCount } from '../../model/format-text.ts';
import {
  compareHosts,
  type HostDecision,
  type HostReason,
  type HostRefusal,
  notPlaced,
  type OfferNumbers,
  type Placed,
  type PlacementRequest,
  type Strategy,
} from './decision.ts';
import { formatFreeBytes, type RegionFacts } from './facts.ts';
import {
  countHostSlots,
  type HostOffer,
  headroomOf,
  makeOffer,
  shortfallRefusals,
} from './headroom.ts';
import { buildPlacementState, type CandidateHost, type PlacementState } from './placement-state.ts';

/** Chooses host, storage and template for one machine, and explains why each other host was not chosen. */
export function chooseHost(request: PlacementRequest, facts: RegionFacts): HostDecision {
  const state = buildPlacementState(request, facts);
  const refusals = [
    ...state.refusals,
    ...state.candidates.flatMap((candidate) => capacityRefusals(candidate, state)),
  ];
  const [best, ...rest] = rankedOffers(state);
  return best === undefined ? notPlaced(refusals) : placed(best, { rest, refusals, request });
}

/** Offers of the hosts with enough capacity, best first. */
function rankedOffers(state: PlacementState): readonly HostOffer[] {
  const { strategy } = state.request.placement;
  return state.candidates
    .flatMap((candidate) => (candidate.isBusy ? [] : (makeOffer(candidate, state) ?? [])))
    .sort((left, right) => compareOffers(strategy, left, right));
}

function capacityRefusals(candidate: CandidateHost, state: PlacementState): readonly HostRefusal[] {
  if (makeOffer(candidate, state) === undefined) return shortfallRefusals(candidate, state);
  if (!candidate.isBusy) return [];
  const host = candidate.host.name;
  const message = `host ${host} has capacity, but already runs its maximum number of concurrent creations`;
  return [{ host, reason: 'HostBusy', message, numbers: {} }];
}

interface Rest {
  readonly rest: readonly HostOffer[];
  readonly refusals: readonly HostRefusal[];
  readonly request: PlacementRequest;
}

function placed(best: HostOffer, { rest, refusals, request }: Rest): Placed {
  const { strategy } = request.placement;
  const passedOver = rest.map((offer) => preferredElsewhere(offer, best, strategy));
  const { storage, template } = best.diskOption;
  return {
    placed: true,
    host: best.host,
    storage,
    ...(template !== undefined && { template: { vmId: template.vmId, host: template.host } }),
    message: `host ${best.host}, storage ${storage}, by strategy '${strategy}': ${describeOffer(strategy, best)}`,
    numbers: numbersOf(best),
    others: [...refusals, ...passedOver].sort(compareHosts),
  };
}

function preferredElsewhere(
  offer: HostOffer,
  best: HostOffer,
  strategy: PlacementRequest['placement']['strategy'],
): HostReason<'AnotherPreferred'> {
  const here = describeOffer(strategy, offer);
  const there = describeOffer(strategy, best);
  return {
    host: offer.host,
    reason: 'AnotherPreferred',
    message: `host ${offer.host} fits too (${here}), but strategy '${strategy}' prefers ${best.host} (${there})`,
    numbers: numbersOf(offer),
  };
}

function numbersOf(offer: HostOffer): OfferNumbers {
  const { memoryFreeBytes, cpusFree, diskFreeBytes, vms, poolMachines } = offer;
  return { memoryFreeBytes, cpusFree, diskFreeBytes, vms, poolMachines };
}

/** What is left of a host for machines of a pool, or why it cannot have any. */
export interface HostHeadroom {
  readonly host: string;
  /** 0 on a refused host. */
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** No VM may have more vCPUs. Absent: the host is refused. */
  readonly maxCpus?: number;
  readonly refusal?: { readonly code: string; readonly message: string };
}

/** Of every host that the request may use. The size of the request matters only for what a host can start at all. */
export function listHeadrooms(
  request: PlacementRequest,
  facts: RegionFacts,
): readonly HostHeadroom[] {
  const state = buildPlacementState(request, facts);
  const byHost = Map.groupBy(state.refusals, ({ host }) => host);
  const refused = [...byHost].map(([host, refusals]) => {
    const { code, message } = notPlaced(refusals);
    return { host, cpus: 0, memoryBytes: 0, diskBytes: 0, refusal: { code, message } };
  });
  const usable = state.candidates.map((candidate) => {
    const { cpusFree, memoryFreeBytes, diskFreeBytes } = headroomOf(candidate, state);
    return {
      host: candidate.host.name,
      maxCpus: candidate.host.cpus,
      cpus: Math.max(0, cpusFree),
      memoryBytes: Math.max(0, memoryFreeBytes),
      diskBytes: Math.max(0, diskFreeBytes),
    };
  });
  return [...refused, ...usable].sort(compareHosts);
}

// Chooses among the hosts that fit. Ties are broken by name, so that the same facts always give the same host.

interface StrategyRule {
  /** Compared in order; the lower value wins. */
  readonly keys: (numbers: OfferNumbers) => readonly number[];
  /** Describes the values that the strategy compares. */
  readonly describe: (offer: HostOffer) => string;
}

const RULES: Readonly<Record<Strategy, StrategyRule>> = {
  spread: {
    keys: ({ poolMachines, memoryFreeBytes }) => [poolMachines, -memoryFreeBytes],
    describe: (offer) =>
      `${formatCount(offer.poolMachines, 'machine')} of the pool, ${describeFree(offer)}`,
  },
  pack: {
    keys: ({ memoryFreeBytes, cpusFree }) => [memoryFreeBytes, cpusFree],
    describe: describeFree,
  },
  'most-free': {
    keys: ({ memoryFreeBytes, cpusFree }) => [-memoryFreeBytes, -cpusFree],
    describe: describeFree,
  },
  'least-vms': {
    keys: ({ vms, memoryFreeBytes }) => [vms, -memoryFreeBytes],
    describe: (offer) => `${formatCount(offer.vms, 'VM')}, ${describeFree(offer)}`,
  },
};

function describeFree({ memoryFreeBytes, cpusFree }: HostOffer): string {
  return `${formatFreeBytes(memoryFreeBytes)} and ${formatCount(cpusFree, 'vCPU')} left after placement`;
}

/** Sorts the preferred offer first. */
export function compareOffers(strategy: Strategy, left: HostOffer, right: HostOffer): number {
  const { keys } = RULES[strategy];
  const others = keys(right);
  const differences = keys(left).map((key, index) => key - (others[index] ?? 0));
  return differences.find((difference) => difference !== 0) ?? compareHosts(left, right);
}

/** Sorts the preferred host first. For hosts of several regions, each chosen in its own. */
export function comparePlaced(strategy: Strategy, left: Placed, right: Placed): number {
  const { keys } = RULES[strategy];
  const [ours, others] = [keys(left.numbers), keys(right.numbers)];
  const differences = ours.map((key, index) => key - (others[index] ?? 0));
  return differences.find((difference) => difference !== 0) ?? 0;
}

function describeOffer(strategy: Strategy, offer: HostOffer): string {
  return RULES[strategy].describe(offer);
}

// Counts how many machines of a size fit, by simulating their placement one after the other. Hosts may share a
// storage, so the sum over hosts would be too high.

export interface FreeSlots {
  /** How many machines would be placed one after the other. */
  readonly total: number;
  /** Counting stopped at `atMost`; more machines may fit. */
  readonly isCapped: boolean;
  /** How many machines each host could take alone; 0 for refused hosts. */
  readonly byHost: Readonly<Record<string, number>>;
}

/** Busy hosts have no slot now. Leave `busyHosts` out of the facts to count capacity only. */
export function countFreeSlots(
  request: PlacementRequest,
  facts: RegionFacts,
  atMost: number,
): FreeSlots {
  const state = buildPlacementState(request, facts);
  // Computed before placeUntilFull, which changes the state.
  const byHost = slotsByHost(state, facts, atMost);
  const total = placeUntilFull(state, atMost);
  return { total, isCapped: total === atMost, byHost };
}

function slotsByHost(state: PlacementState, { hosts }: RegionFacts, atMost: number) {
  const names = hosts.map(({ name }) => name).sort();
  const slots = new Map(names.map((name) => [name, 0]));
  for (const candidate of state.candidates) {
    const count = candidate.isBusy ? 0 : countHostSlots(candidate, state);
    slots.set(candidate.host.name, Math.min(count, atMost));
  }
  return Object.fromEntries(slots);
}

/** Places machines one after the other, and recomputes only the offers that a placement affects. */
function placeUntilFull(state: PlacementState, atMost: number): number {
  const { strategy } = state.request.placement;
  const before = (left: HostWithOffer, right: HostWithOffer) =>
    compareOffers(strategy, left.offer, right.offer);
  let queue = hostsWithOffers(state.candidates, state).sort(before);
  for (let count = 0; count < atMost; count += 1) {
    const best = queue.shift();
    if (best === undefined) return count;
    const { host, diskOption } = best.offer;
    state.allocations.addMachine(host);
    state.storageSpace.reserve(host, diskOption.storage, state.request.size.diskBytes);
    if (state.storageSpace.isShared(diskOption.storage)) {
      queue = hostsWithOffers(
        [best, ...queue].map(({ candidate }) => candidate),
        state,
      ).sort(before);
    } else {
      for (const again of hostsWithOffers([best.candidate], state))
        insertSorted(queue, again, before);
    }
  }
  return atMost;
}

interface HostWithOffer {
  readonly candidate: CandidateHost;
  readonly offer: HostOffer;
}

/** A host without capacity gets none later: nothing is freed while slots are counted. */
function hostsWithOffers(
  candidates: readonly CandidateHost[],
  state: PlacementState,
): HostWithOffer[] {
  return candidates.flatMap((candidate) => {
    const offer = candidate.isBusy ? undefined : makeOffer(candidate, state);
    return offer === undefined ? [] : [{ candidate, offer }];
  });
}

function insertSorted(
  queue: HostWithOffer[],
  one: HostWithOffer,
  before: (left: HostWithOffer, right: HostWithOffer) => number,
): void {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const there = queue[middle];
    if (there !== undefined && before(there, one) < 0) low = middle + 1;
    else high = middle;
  }
  queue.splice(low, 0, one);
}
