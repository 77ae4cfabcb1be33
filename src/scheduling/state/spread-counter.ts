// SPDX-License-Identifier: Apache-2.0
// Counts matching pods per domain for one spread constraint, and tracks the smallest count. Only eligible nodes
// form a domain.

import { NO_DOMAIN, type Topology } from './topology.ts';

export class SpreadCounter {
  readonly topology: Topology;
  readonly #isEligible: (nodeId: number) => boolean;
  readonly #eligibleNodes: boolean[] = [];
  readonly #counts: number[] = [];
  /** Eligible nodes by domain. A domain exists while it has one. */
  readonly #nodes: number[] = [];
  /** Number of domains by pod count, so that the minimum is updated in small steps. */
  readonly #domainsWith: number[] = [];
  #domains = 0;
  #minimum = 0;

  constructor(topology: Topology, isEligible: (nodeId: number) => boolean) {
    this.topology = topology;
    this.#isEligible = isEligible;
  }

  addNode(nodeId: number): void {
    const domain = this.topology.domainOf(nodeId);
    const isEligible = domain !== NO_DOMAIN && this.#isEligible(nodeId);
    this.#eligibleNodes[nodeId] = isEligible;
    if (isEligible) this.#addEligibleNode(domain);
  }

  removeNode(nodeId: number): void {
    if (this.#eligibleNodes[nodeId] !== true) return;
    this.#eligibleNodes[nodeId] = false;
    this.#removeEligibleNode(this.topology.domainOf(nodeId));
  }

  #addEligibleNode(domain: number): void {
    const nodes = this.#nodes[domain] ?? 0;
    this.#nodes[domain] = nodes + 1;
    if (nodes === 0) this.#addDomainWith(this.#counts[domain] ?? 0);
  }

  #removeEligibleNode(domain: number): void {
    const nodes = (this.#nodes[domain] ?? 0) - 1;
    this.#nodes[domain] = nodes;
    if (nodes === 0) this.#removeDomainWith(this.#counts[domain] ?? 0);
  }

  add(nodeId: number, pods: number): void {
    if (this.#eligibleNodes[nodeId] !== true) return;
    const domain = this.topology.domainOf(nodeId);
    const before = this.#counts[domain] ?? 0;
    this.#counts[domain] = before + pods;
    this.#addDomainWith(before + pods);
    this.#removeDomainWith(before);
  }

  #addDomainWith(count: number): void {
    this.#domainsWith[count] = (this.#domainsWith[count] ?? 0) + 1;
    if (this.#domains === 0 || count < this.#minimum) this.#minimum = count;
    this.#domains += 1;
  }

  #removeDomainWith(count: number): void {
    this.#domainsWith[count] = (this.#domainsWith[count] ?? 0) - 1;
    this.#domains -= 1;
    if (this.#domains === 0) return;
    while ((this.#domainsWith[this.#minimum] ?? 0) === 0) this.#minimum += 1;
  }

  get domains(): number {
    return this.#domains;
  }

  /** The smallest count of any domain; 0 without domains. */
  get minimum(): number {
    return this.#domains === 0 ? 0 : this.#minimum;
  }

  /** Matching pods in a domain; 0 if it has no eligible node. */
  inDomain(domain: number): number {
    return (this.#nodes[domain] ?? 0) > 0 ? (this.#counts[domain] ?? 0) : 0;
  }
}
