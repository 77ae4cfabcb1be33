// SPDX-License-Identifier: Apache-2.0
// A node with its placed pods.

import type { Node } from '../../model/node.ts';
import type { PlacedPod } from './placed-pod.ts';

export class NodeInfo {
  readonly id: number;
  readonly node: Node;
  /** By resource id. */
  readonly allocatable: readonly number[];
  readonly used: number[] = [];
  readonly #placedPods: PlacedPod[] = [];
  /** A removed node keeps its id, because an undo may add it again. */
  isPresent = false;

  constructor(id: number, node: Node, allocatable: readonly number[]) {
    this.id = id;
    this.node = node;
    this.allocatable = allocatable;
  }

  get placedPods(): readonly PlacedPod[] {
    return this.#placedPods;
  }

  free(resource: number): number {
    return (this.allocatable[resource] ?? 0) - (this.used[resource] ?? 0);
  }

  addPod(placedPod: PlacedPod): void {
    this.#placedPods.push(placedPod);
    this.#addUsed(placedPod, 1);
  }

  removePod(placedPod: PlacedPod): void {
    // From the end: a simulation removes the pods that it added last.
    const index = this.#placedPods.lastIndexOf(placedPod);
    if (index < 0)
      throw new RangeError(`pod '${placedPod.pod.name}' is not on node '${this.node.name}'`);
    if (index === this.#placedPods.length - 1) this.#placedPods.pop();
    else this.#placedPods.splice(index, 1);
    this.#addUsed(placedPod, -1);
  }

  #addUsed({ held }: PlacedPod, sign: 1 | -1): void {
    for (let i = 0; i < held.ids.length; i += 1) {
      const id = held.ids[i] ?? 0;
      this.used[id] = (this.used[id] ?? 0) + sign * (held.amounts[i] ?? 0);
    }
  }
}
