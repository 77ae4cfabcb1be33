// SPDX-License-Identifier: Apache-2.0

/** So many different values are remembered; then it begins anew, and what is shared stays shared. */
const MOST_VALUES = 20_000;

/**
 * Equal values become the same one. Pods are made from templates: thousands of them have the same labels,
 * tolerations and amounts, and their copies would be most of what a large cluster takes in memory. Only for plain
 * data that nobody changes.
 */
export class Interner {
  #values = new Map<string, unknown>();
  #texts = new Map<string, string>();

  value<T extends object>(value: T): T {
    const key = JSON.stringify(value);
    // A key is what the value was written as: only the same kind of thing is written like it.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
    const known = this.#values.get(key) as T | undefined;
    if (known !== undefined) return known;
    if (this.#values.size >= MOST_VALUES) this.#values = new Map();
    this.#values.set(key, value);
    return value;
  }

  text(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size >= MOST_VALUES) this.#texts = new Map();
    this.#texts.set(text, text);
    return text;
  }
}
