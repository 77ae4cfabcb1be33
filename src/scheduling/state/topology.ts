// SPDX-License-Identifier: Apache-2.0
// One topology key: which domain (label value) each node is in.

import type { Node } from '../../model/node.ts';

export const NO_DOMAIN = -1;

export class Topology {
  readonly key: string;
  readonly #names: string[] = [];
  readonly #ids = new Map<string, number>();
  readonly #domainByNode: number[] = [];

  constructor(key: string) {
    this.key = key;
  }

  /** The id of a label value. Ids are assigned in order of first use and never released. */
  domainId(value: string): number {
    const known = this.#ids.get(value);
    if (known !== undefined) return known;
    const id = this.#names.length;
    this.#ids.set(value, id);
    this.#names.push(value);
    return id;
  }

  add(nodeId: number, node: Node): void {
    const value = Object.hasOwn(node.labels, this.key) ? node.labels[this.key] : undefined;
    this.#domainByNode[nodeId] = value === undefined ? NO_DOMAIN : this.domainId(value);
  }

  remove(nodeId: number): void {
    this.#domainByNode[nodeId] = NO_DOMAIN;
  }

  domainOf(nodeId: number): number {
    return this.#domainByNode[nodeId] ?? NO_DOMAIN;
  }

  domainName(domain: number): string {
    return this.#names[domain] ?? '';
  }
}
