// SPDX-License-Identifier: Apache-2.0
// Maps resources to small integers, so that checking capacity compares short arrays.

import type { Resources } from '../../model/resources.ts';

export const CPU = 0;
export const MEMORY = 1;
export const EPHEMERAL_STORAGE = 2;

/** Requested resources only: `ids[i]` is the resource, `amounts[i]` the amount. */
export interface ResourceDemand {
  readonly ids: readonly number[];
  readonly amounts: readonly number[];
}

export class ResourceNames {
  readonly #names: string[] = ['cpu', 'memory', 'ephemeral-storage', 'pods'];
  readonly #ids = new Map(this.#names.map((name, id) => [name, id]));

  id(name: string): number {
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    const id = this.#names.length;
    this.#names.push(name);
    this.#ids.set(name, id);
    return id;
  }

  name(id: number): string {
    return this.#names[id] ?? '';
  }

  demand(resources: Resources): ResourceDemand {
    const all = this.vector(resources);
    const ids = all.flatMap((amount, id) => (amount > 0 ? [id] : []));
    return { ids, amounts: ids.map((id) => all[id] ?? 0) };
  }

  /** All amounts by resource id; absent resources are 0. */
  vector(resources: Resources): number[] {
    const all = [
      resources.cpuMilli,
      resources.memoryBytes,
      resources.ephemeralStorageBytes,
      resources.pods,
    ];
    for (const [name, amount] of Object.entries(resources.extended)) {
      const id = this.id(name);
      while (all.length <= id) all.push(0);
      all[id] = amount;
    }
    return all;
  }
}
