// SPDX-License-Identifier: Apache-2.0
// One topology key: which nodes carry it, and which of them share a value (a domain).

import type { Node } from '../../model/node.ts';

export const NO_DOMAIN = -1;

export class Topology {
  readonly key: string;
  readonly #names: string[] = [];
  readonly #ids = new Map<string, number>();
  readonly #domainOfSlot: number[] = [];

  constructor(key: string) {
    this.key = key;
  }

  /** The number of a value; numbers are given in the order of first sight and never taken back. */
  domain(value: string): number {
    const known = this.#ids.get(value);
    if (known !== undefined) return known;
    const id = this.#names.length;
    this.#ids.set(value, id);
    this.#names.push(value);
    return id;
  }

  add(slot: number, node: Node): void {
    const value = Object.hasOwn(node.labels, this.key) ? node.labels[this.key] : undefined;
    this.#domainOfSlot[slot] = value === undefined ? NO_DOMAIN : this.domain(value);
  }

  remove(slot: number): void {
    this.#domainOfSlot[slot] = NO_DOMAIN;
  }

  of(slot: number): number {
    return this.#domainOfSlot[slot] ?? NO_DOMAIN;
  }

  name(domain: number): string {
    return this.#names[domain] ?? '';
  }
}
