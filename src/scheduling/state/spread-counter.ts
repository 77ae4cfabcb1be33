// SPDX-License-Identifier: Apache-2.0
// Counts matching pods per domain for one spread constraint, and tracks the smallest count. Only eligible nodes
// form a domain.

import type { DomainListener, EligibleNodes } from './eligible-nodes.ts';
import type { Topology } from './topology.ts';

export class SpreadCounter implements DomainListener {
  readonly #nodes: EligibleNodes;
  readonly #counts: number[] = [];
  /** Number of domains by pod count, so that the minimum is updated in small steps. */
  readonly #domainsWith: number[] = [];
  #domains = 0;
  #minimum = 0;

  constructor(nodes: EligibleNodes) {
    this.#nodes = nodes;
    nodes.attach(this);
  }

  get topology(): Topology {
    return this.#nodes.topology;
  }

  add(nodeId: number, pods: number): void {
    if (!this.#nodes.has(nodeId)) return;
    const domain = this.topology.domainOf(nodeId);
    const before = this.#counts[domain] ?? 0;
    this.#counts[domain] = before + pods;
    this.#addDomainWith(before + pods);
    this.#removeDomainWith(before);
  }

  addDomain(domain: number): void {
    this.#addDomainWith(this.#counts[domain] ?? 0);
  }

  removeDomain(domain: number): void {
    this.#removeDomainWith(this.#counts[domain] ?? 0);
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
    return this.#nodes.hasDomain(domain) ? (this.#counts[domain] ?? 0) : 0;
  }
}
