// SPDX-License-Identifier: Apache-2.0
// The nodes that count for topology spread constraints. Constraints with the same rules for nodes share them.

import { NO_DOMAIN, type Topology } from './topology.ts';

/** Is informed of domains that get their first eligible node or lose their last. */
export interface DomainListener {
  addDomain(domain: number): void;
  removeDomain(domain: number): void;
}

export class EligibleNodes {
  readonly topology: Topology;
  readonly #isEligible: (nodeId: number) => boolean;
  readonly #eligible: boolean[] = [];
  /** Number of eligible nodes by domain. A domain exists while it has one. */
  readonly #nodes: number[] = [];
  readonly #listeners: DomainListener[] = [];

  constructor(topology: Topology, isEligible: (nodeId: number) => boolean) {
    this.topology = topology;
    this.#isEligible = isEligible;
  }

  addNode(nodeId: number): void {
    const domain = this.topology.domainOf(nodeId);
    const isEligible = domain !== NO_DOMAIN && this.#isEligible(nodeId);
    this.#eligible[nodeId] = isEligible;
    if (!isEligible) return;
    const nodes = this.#nodes[domain] ?? 0;
    this.#nodes[domain] = nodes + 1;
    if (nodes === 0) for (const one of this.#listeners) one.addDomain(domain);
  }

  removeNode(nodeId: number): void {
    if (!this.has(nodeId)) return;
    this.#eligible[nodeId] = false;
    const domain = this.topology.domainOf(nodeId);
    const nodes = (this.#nodes[domain] ?? 0) - 1;
    this.#nodes[domain] = nodes;
    if (nodes === 0) for (const one of this.#listeners) one.removeDomain(domain);
  }

  has(nodeId: number): boolean {
    return this.#eligible[nodeId] === true;
  }

  hasDomain(domain: number): boolean {
    return (this.#nodes[domain] ?? 0) > 0;
  }

  /** Informs the listener of every domain, now and in future. */
  attach(listener: DomainListener): void {
    this.#listeners.push(listener);
    for (const domain of this.#nodes.keys()) if (this.hasDomain(domain)) listener.addDomain(domain);
  }
}
