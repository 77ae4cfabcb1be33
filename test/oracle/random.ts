// SPDX-License-Identifier: Apache-2.0
// A reproducible random number generator.

export class Random {
  #state: number;

  constructor(seed: number) {
    // Adjacent seeds must not give similar sequences.
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
    for (let i = 0; i < 4; i += 1) this.next();
  }

  /** At least 0, below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Both ends included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  pick<T>(options: readonly T[]): T {
    const picked = options[Math.floor(this.next() * options.length)];
    if (picked === undefined) throw new RangeError('cannot pick from an empty list');
    return picked;
  }

  /** A random, non-empty selection of the options, in order. */
  some<T>(options: readonly T[], probability = 0.5): T[] {
    const chosen = options.filter(() => this.chance(probability));
    return chosen.length === 0 ? [this.pick(options)] : chosen;
  }

  times<T>(count: number, make: (index: number) => T): T[] {
    return Array.from({ length: count }, (_, index) => make(index));
  }
}
