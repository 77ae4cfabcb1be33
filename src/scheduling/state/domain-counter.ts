// SPDX-License-Identifier: Apache-2.0
// How many pods of some kind are in each domain of a topology. Counts follow every placement; nothing is
// ever counted again from the start.

import { NO_DOMAIN, type Topology } from './topology.ts';

export class DomainCounter {
  readonly topology: Topology;
  readonly #counts: number[] = [];
  #total = 0;

  constructor(topology: Topology) {
    this.topology = topology;
  }

  add(slot: number, pods: number): void {
    const domain = this.topology.of(slot);
    // A pod on a node without the key is in no domain: it counts for nobody.
    if (domain === NO_DOMAIN) return;
    this.#counts[domain] = (this.#counts[domain] ?? 0) + pods;
    this.#total += pods;
  }

  /** Pods in the domain of a node; 0 for a node without the key. */
  at(slot: number): number {
    return this.#counts[this.topology.of(slot)] ?? 0;
  }

  get total(): number {
    return this.#total;
  }
}
