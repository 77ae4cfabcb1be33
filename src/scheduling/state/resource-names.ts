// SPDX-License-Identifier: Apache-2.0
// Resources by number, so that a fit is a comparison of short lists of integers.

import type { Resources } from '../../model/resources.ts';

export const CPU = 0;
export const MEMORY = 1;
export const EPHEMERAL_STORAGE = 2;

/** Only what is asked for: `ids[i]` names the resource, `amounts[i]` says how much. */
export interface Demand {
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

  demand(resources: Resources): Demand {
    const all = this.vector(resources);
    const ids = all.flatMap((amount, id) => (amount > 0 ? [id] : []));
    return { ids, amounts: ids.map((id) => all[id] ?? 0) };
  }

  /** Every amount by its number; extended ones that are absent are holes to be read as 0. */
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
