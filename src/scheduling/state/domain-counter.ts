// SPDX-License-Identifier: Apache-2.0
// Counts selected pods per domain of a topology. Updated with every placement, never recounted.

import { NO_DOMAIN, type Topology } from './topology.ts';

export class DomainCounter {
  readonly topology: Topology;
  readonly #counts: number[] = [];
  #total = 0;

  constructor(topology: Topology) {
    this.topology = topology;
  }

  add(nodeId: number, pods: number): void {
    const domain = this.topology.domainOf(nodeId);
    // A pod on a node without the topology key is in no domain and is not counted.
    if (domain === NO_DOMAIN) return;
    this.#counts[domain] = (this.#counts[domain] ?? 0) + pods;
    this.#total += pods;
  }

  /** Pods in the domain of a node; 0 for a node without the key. */
  podsNear(nodeId: number): number {
    return this.#counts[this.topology.domainOf(nodeId)] ?? 0;
  }

  get total(): number {
    return this.#total;
  }
}
