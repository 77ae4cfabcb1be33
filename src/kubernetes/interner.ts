// SPDX-License-Identifier: Apache-2.0

/** Limit of stored values; beyond it the table starts empty again, and values already shared stay shared. */
const MAX_VALUES = 20_000;

/**
 * Returns one shared instance for equal values. Thousands of pods have the same labels, tolerations and requests; their
 * copies would take most of the memory of a large cluster. Only for immutable plain data.
 */
export class Interner {
  #values = new Map<string, unknown>();
  #texts = new Map<string, string>();

  intern<T extends object>(value: T): T {
    const key = JSON.stringify(value);
    // Equal JSON means equal type: each type serializes differently.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
    const known = this.#values.get(key) as T | undefined;
    if (known !== undefined) return known;
    if (this.#values.size >= MAX_VALUES) this.#values = new Map();
    this.#values.set(key, value);
    return value;
  }

  internText(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size >= MAX_VALUES) this.#texts = new Map();
    this.#texts.set(text, text);
    return text;
  }
}
