// SPDX-License-Identifier: Apache-2.0
// A node with what is on it.

import type { Node } from '../../model/node.ts';
import type { Resident } from './resident.ts';

export class Slot {
  readonly id: number;
  readonly node: Node;
  /** By resource number. */
  readonly allocatable: readonly number[];
  readonly used: number[] = [];
  readonly residents = new Set<Resident>();
  /** Removed nodes keep their number: what is undone may bring them back. */
  isPresent = false;

  constructor(id: number, node: Node, allocatable: readonly number[]) {
    this.id = id;
    this.node = node;
    this.allocatable = allocatable;
  }

  free(resource: number): number {
    return (this.allocatable[resource] ?? 0) - (this.used[resource] ?? 0);
  }

  hold(resident: Resident): void {
    this.residents.add(resident);
    this.#use(resident, 1);
  }

  release(resident: Resident): void {
    this.residents.delete(resident);
    this.#use(resident, -1);
  }

  #use({ held }: Resident, sign: 1 | -1): void {
    for (let i = 0; i < held.ids.length; i += 1) {
      const id = held.ids[i] ?? 0;
      this.used[id] = (this.used[id] ?? 0) + sign * (held.amounts[i] ?? 0);
    }
  }
}
