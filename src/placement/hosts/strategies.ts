// SPDX-License-Identifier: Apache-2.0
// Which of the hosts that fit is taken. Names decide ties, so that the same facts give the same host.
import { bytesFree, counted } from './amounts.ts';
import { byHost } from './decision.ts';
import type { Strategy } from './request.ts';
import type { Offer } from './room.ts';

interface Rule {
  /** The first differing number decides, the lower wins. */
  readonly keys: (offer: Offer) => readonly number[];
  /** What it looked at, in words. */
  readonly words: (offer: Offer) => string;
}

const RULES: Readonly<Record<Strategy, Rule>> = {
  spread: {
    keys: ({ poolMachines, memoryFreeBytes }) => [poolMachines, -memoryFreeBytes],
    words: (offer) => `${counted(offer.poolMachines, 'machine')} of the pool, ${memory(offer)}`,
  },
  pack: {
    keys: ({ memoryFreeBytes, cpusFree }) => [memoryFreeBytes, cpusFree],
    words: memory,
  },
  'most-free': {
    keys: ({ memoryFreeBytes, cpusFree }) => [-memoryFreeBytes, -cpusFree],
    words: memory,
  },
  'least-vms': {
    keys: ({ vms, memoryFreeBytes }) => [vms, -memoryFreeBytes],
    words: (offer) => `${counted(offer.vms, 'VM')}, ${memory(offer)}`,
  },
};

function memory({ memoryFreeBytes, cpusFree }: Offer): string {
  return `${bytesFree(memoryFreeBytes)} and ${counted(cpusFree, 'vCPU')} left after it`;
}

/** The preferred first. */
export function compareOffers(strategy: Strategy, left: Offer, right: Offer): number {
  const { keys } = RULES[strategy];
  const others = keys(right);
  const differences = keys(left).map((key, index) => key - (others[index] ?? 0));
  return differences.find((difference) => difference !== 0) ?? byHost(left, right);
}

/** What the strategy saw of an offer. */
export function offerWords(strategy: Strategy, offer: Offer): string {
  return RULES[strategy].words(offer);
}
