// SPDX-License-Identifier: Apache-2.0
// The addresses that a pool may assign, and why each is held. Never enumerated: an IPv6 range may have 2^64.
import { type AddressRange, type Family, isReservedAddress, readAddress } from './address.ts';

/** In ascending precedence: the last one is reported if several apply to an address. */
const HOLDS = ['cooling-down', 'leased', 'used'] as const;

export type AddressHold = (typeof HOLDS)[number];

interface ValueRange {
  readonly first: bigint;
  readonly last: bigint;
}

interface PoolSettings {
  readonly ranges: readonly AddressRange[];
  readonly prefix: number;
  readonly gateway: string | undefined;
}

export class AddressPool {
  readonly family: Family;
  readonly #prefix: number;
  readonly #ranges: readonly ValueRange[];
  readonly #gateway: bigint | undefined;
  readonly #holds = new Map<bigint, AddressHold>();

  constructor(family: Family, { ranges, prefix, gateway }: PoolSettings) {
    this.family = family;
    this.#prefix = prefix;
    this.#ranges = ranges.flatMap((range) => valueRangeOf(family, range));
    this.#gateway = gateway === undefined ? undefined : this.#valueOf(gateway);
  }

  /** Ignores text that is not an address of this pool. */
  hold(text: string, hold: AddressHold): void {
    const value = this.#valueOf(text);
    if (value === undefined || !this.#canAssign(value)) return;
    const known = this.#holds.get(value);
    if (known === undefined || HOLDS.indexOf(hold) > HOLDS.indexOf(known)) {
      this.#holds.set(value, hold);
    }
  }

  holdOf(text: string): AddressHold | undefined {
    const value = this.#valueOf(text);
    return value === undefined ? undefined : this.#holds.get(value);
  }

  count(hold: AddressHold): number {
    return [...this.#holds.values()].filter((one) => one === hold).length;
  }

  /** As text, because the number may exceed the safe integers. */
  size(): string {
    const all = this.#ranges.reduce((sum, { first, last }) => sum + last - first + 1n, 0n);
    return String(all);
  }

  /** The address as a number if this pool can assign it and it is free. */
  freeValue(text: string): bigint | undefined {
    const value = this.#valueOf(text);
    return value !== undefined && this.#isFree(value) ? value : undefined;
  }

  /**
   * Searches the ranges in their configured order. Terminates soon even in huge ranges: every skipped address
   * is held, the gateway, or one of at most two adjacent reserved addresses.
   */
  lowestFree(): bigint | undefined {
    for (const { first, last } of this.#ranges) {
      for (let value = first; value <= last; value += 1n) if (this.#isFree(value)) return value;
    }
    return undefined;
  }

  /** Counts up to `atMost`. */
  countFree(atMost: number): number {
    // Ranges may overlap.
    const free = new Set<bigint>();
    for (const { first, last } of this.#ranges) {
      for (let value = first; value <= last && free.size < atMost; value += 1n) {
        if (this.#isFree(value)) free.add(value);
      }
    }
    return free.size;
  }

  #isFree(value: bigint): boolean {
    return this.#canAssign(value) && !this.#holds.has(value);
  }

  #canAssign(value: bigint): boolean {
    if (
      value === this.#gateway ||
      isReservedAddress({ family: this.family, value }, this.#prefix)
    ) {
      return false;
    }
    return this.#ranges.some(({ first, last }) => first <= value && value <= last);
  }

  #valueOf(text: string): bigint | undefined {
    const address = readAddress(text);
    return address?.family === this.family ? address.value : undefined;
  }
}

function valueRangeOf(family: Family, { from, to }: AddressRange): readonly ValueRange[] {
  const first = readAddress(from);
  const last = readAddress(to);
  return first?.family === family && last?.family === family
    ? [{ first: first.value, last: last.value }]
    : [];
}
