// SPDX-License-Identifier: Apache-2.0
// Matching pods per domain for one spread constraint, with the smallest count at hand. Only nodes that the
// constraint lets count make a domain.

import { NO_DOMAIN, type Topology } from './topology.ts';

export class SpreadCounter {
  readonly topology: Topology;
  readonly #isEligible: (slot: number) => boolean;
  readonly #eligibleSlots: boolean[] = [];
  readonly #counts: number[] = [];
  /** Eligible nodes by domain: a domain is there while it has one. */
  readonly #nodes: number[] = [];
  /** Domains by their count, so that the minimum moves by steps. */
  readonly #domainsWith: number[] = [];
  #domains = 0;
  #minimum = 0;

  constructor(topology: Topology, isEligible: (slot: number) => boolean) {
    this.topology = topology;
    this.#isEligible = isEligible;
  }

  addNode(slot: number): void {
    const domain = this.topology.of(slot);
    const isEligible = domain !== NO_DOMAIN && this.#isEligible(slot);
    this.#eligibleSlots[slot] = isEligible;
    if (isEligible) this.#open(domain);
  }

  removeNode(slot: number): void {
    if (this.#eligibleSlots[slot] !== true) return;
    this.#eligibleSlots[slot] = false;
    this.#close(this.topology.of(slot));
  }

  #open(domain: number): void {
    const nodes = this.#nodes[domain] ?? 0;
    this.#nodes[domain] = nodes + 1;
    if (nodes === 0) this.#enter(this.#counts[domain] ?? 0);
  }

  #close(domain: number): void {
    const nodes = (this.#nodes[domain] ?? 0) - 1;
    this.#nodes[domain] = nodes;
    if (nodes === 0) this.#leave(this.#counts[domain] ?? 0);
  }

  add(slot: number, pods: number): void {
    if (this.#eligibleSlots[slot] !== true) return;
    const domain = this.topology.of(slot);
    const before = this.#counts[domain] ?? 0;
    this.#counts[domain] = before + pods;
    this.#enter(before + pods);
    this.#leave(before);
  }

  #enter(count: number): void {
    this.#domainsWith[count] = (this.#domainsWith[count] ?? 0) + 1;
    if (this.#domains === 0 || count < this.#minimum) this.#minimum = count;
    this.#domains += 1;
  }

  #leave(count: number): void {
    this.#domainsWith[count] = (this.#domainsWith[count] ?? 0) - 1;
    this.#domains -= 1;
    if (this.#domains === 0) return;
    while ((this.#domainsWith[this.#minimum] ?? 0) === 0) this.#minimum += 1;
  }

  get domains(): number {
    return this.#domains;
  }

  /** The smallest count of any domain; 0 while there is none. */
  get minimum(): number {
    return this.#domains === 0 ? 0 : this.#minimum;
  }

  /** Matching pods in a domain; 0 while no node of it counts. */
  inDomain(domain: number): number {
    return (this.#nodes[domain] ?? 0) > 0 ? (this.#counts[domain] ?? 0) : 0;
  }
}
