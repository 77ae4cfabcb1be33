// SPDX-License-Identifier: Apache-2.0
// Which machines are replaced together: the first ones of several orders.

import { isLeftOnNode } from './eviction-rules.ts';
import type { Candidate } from './removal-candidate.ts';
import { pseudoRandom } from './replacement-drains.ts';

/** How many machines get new ones; also all of an order. */
const SET_SIZES = [2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50];

/** How many sizes later the next search begins. */
const SIZES_PER_SEARCH = 5;

export type Order = readonly Candidate[];

/** A search may end before it has tried all: later ones begin with others. */
export function setSizes(orders: readonly Order[], search: number): readonly number[] {
  const all = orders.map(({ length }) => length).filter((length) => length > 1);
  const sizes = [...new Set([...SET_SIZES, ...all])].toSorted((left, right) => left - right);
  const first = (search * SIZES_PER_SEARCH) % sizes.length;
  return [...sizes.slice(first), ...sizes.slice(0, first)];
}

/**
 * The least utilized machines first, of all pools and of each pool; the same machines by what they have left. Searches that follow
 * one without a result shuffle them, each in another way.
 */
export function ordersOf(candidates: Order, search: number): readonly Order[] {
  const byPool = [...Map.groupBy(candidates, ({ machine }) => machine.pool).values()];
  const orders = byPool.length === 1 ? byPool : [candidates, ...byPool];
  const all = [...orders, ...orders.map(byComplement)];
  if (search === 0) return all;
  const random = pseudoRandom(search);
  return all.map((order) => shuffle(order, random));
}

/** In turn the machine with the most CPU left, compared with its memory, and the one with the least. */
function byComplement(candidates: Order): Order {
  const sorted = candidates.toSorted(
    ({ utilization: left }, { utilization: right }) =>
      left.cpu - left.memory - (right.cpu - right.memory),
  );
  const half = Math.ceil(sorted.length / 2);
  const ends = sorted.slice(half).toReversed();
  return sorted.slice(0, half).flatMap((one, index) => [one, ...ends.slice(index, index + 1)]);
}

/** Only roughly: the first half stays before the second one for the most part. */
function shuffle(order: Order, random: (below: number) => number): Order {
  return order
    .map((candidate, index) => ({ candidate, key: random(order.length) + index / 2 }))
    .toSorted((left, right) => left.key - right.key)
    .map(({ candidate }) => candidate);
}

/** The machines with the largest pods first, which find a node only while there is much space. */
export function byLargestPod(candidates: Order): Order {
  return candidates
    .map((candidate) => ({ candidate, largest: largestPodOf(candidate) }))
    .toSorted((left, right) => right.largest - left.largest)
    .map(({ candidate }) => candidate);
}

function largestPodOf({ pods, node: { allocatable } }: Candidate): number {
  const shares = pods
    .filter((pod) => !isLeftOnNode(pod))
    .map(({ requests }) =>
      Math.max(
        requests.cpuMilli / Math.max(1, allocatable.cpuMilli),
        requests.memoryBytes / Math.max(1, allocatable.memoryBytes),
      ),
    );
  return Math.max(0, ...shares);
}
