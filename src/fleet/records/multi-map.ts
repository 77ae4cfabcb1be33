// SPDX-License-Identifier: Apache-2.0

/** Values grouped by a key that several values may share. */
export class MultiMap<T> {
  readonly #groups = new Map<string, Map<string, T>>();
  readonly #lists = new Map<string, readonly T[]>();

  add(key: string, id: string, value: T): void {
    const group = this.#groups.get(key) ?? new Map<string, T>();
    group.set(id, value);
    this.#groups.set(key, group);
    this.#lists.delete(key);
  }

  remove(key: string, id: string): void {
    const group = this.#groups.get(key);
    group?.delete(id);
    if (group?.size === 0) this.#groups.delete(key);
    this.#lists.delete(key);
  }

  /** Returns the same array until the group changes. */
  get(key: string): readonly T[] {
    const group = this.#groups.get(key);
    if (group === undefined) return [];
    const list = this.#lists.get(key) ?? [...group.values()];
    this.#lists.set(key, list);
    return list;
  }
}
