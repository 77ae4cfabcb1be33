// SPDX-License-Identifier: Apache-2.0
// Chooses among the hosts that fit. Ties are broken by name, so that the same facts always give the same host.
import { formatCount, formatFreeBytes } from './amounts.ts';
import { compareHosts } from './decision.ts';
import type { HostOffer } from './headroom.ts';
import type { Strategy } from './request.ts';

interface StrategyRule {
  /** Compared in order; the lower value wins. */
  readonly keys: (offer: HostOffer) => readonly number[];
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

export function describeOffer(strategy: Strategy, offer: HostOffer): string {
  return RULES[strategy].describe(offer);
}
