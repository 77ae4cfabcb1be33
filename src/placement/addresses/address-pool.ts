// SPDX-License-Identifier: Apache-2.0
// The addresses a pool may give out, and who holds which. Never enumerated: an IPv6 range may have 2^64.
import { type AddressSpan, type Family, isReserved, readAddress } from './address.ts';

/** The firmest last: it is what is told where several hold one address. */
const HOLDS = ['resting', 'leased', 'used'] as const;

export type Hold = (typeof HOLDS)[number];

interface Span {
  readonly first: bigint;
  readonly last: bigint;
}

interface PoolSettings {
  readonly ranges: readonly AddressSpan[];
  readonly prefix: number;
  readonly gateway: string | undefined;
}

export class AddressPool {
  readonly family: Family;
  readonly #prefix: number;
  readonly #spans: readonly Span[];
  readonly #gateway: bigint | undefined;
  readonly #holds = new Map<bigint, Hold>();

  constructor(family: Family, { ranges, prefix, gateway }: PoolSettings) {
    this.family = family;
    this.#prefix = prefix;
    this.#spans = ranges.flatMap((range) => spanOf(family, range));
    this.#gateway = gateway === undefined ? undefined : this.#valueOf(gateway);
  }

  /** Text that is no address of this pool changes nothing. */
  hold(text: string, hold: Hold): void {
    const value = this.#valueOf(text);
    if (value === undefined || !this.#canGive(value)) return;
    const known = this.#holds.get(value);
    if (known === undefined || HOLDS.indexOf(hold) > HOLDS.indexOf(known)) {
      this.#holds.set(value, hold);
    }
  }

  holdOf(text: string): Hold | undefined {
    const value = this.#valueOf(text);
    return value === undefined ? undefined : this.#holds.get(value);
  }

  count(hold: Hold): number {
    return [...this.#holds.values()].filter((one) => one === hold).length;
  }

  /** As text: it may be beyond exact numbers. */
  size(): string {
    const all = this.#spans.reduce((sum, { first, last }) => sum + last - first + 1n, 0n);
    return String(all);
  }

  /** The address as a number if it is this pool's to give and nobody's. */
  freeValue(text: string): bigint | undefined {
    const value = this.#valueOf(text);
    return value !== undefined && this.#isFree(value) ? value : undefined;
  }

  /**
   * Ranges in the order in which they are written. Ends soon even in endless ranges: what is passed over is
   * held, the gateway, or one of at most two reserved addresses in a row.
   */
  lowestFree(): bigint | undefined {
    for (const { first, last } of this.#spans) {
      for (let value = first; value <= last; value += 1n) if (this.#isFree(value)) return value;
    }
    return undefined;
  }

  /** Counted no further than that. */
  countFree(atMost: number): number {
    // Ranges may overlap.
    const free = new Set<bigint>();
    for (const { first, last } of this.#spans) {
      for (let value = first; value <= last && free.size < atMost; value += 1n) {
        if (this.#isFree(value)) free.add(value);
      }
    }
    return free.size;
  }

  #isFree(value: bigint): boolean {
    return this.#canGive(value) && !this.#holds.has(value);
  }

  #canGive(value: bigint): boolean {
    if (value === this.#gateway || isReserved({ family: this.family, value }, this.#prefix)) {
      return false;
    }
    return this.#spans.some(({ first, last }) => first <= value && value <= last);
  }

  #valueOf(text: string): bigint | undefined {
    const address = readAddress(text);
    return address?.family === this.family ? address.value : undefined;
  }
}

function spanOf(family: Family, { from, to }: AddressSpan): readonly Span[] {
  const first = readAddress(from);
  const last = readAddress(to);
  return first?.family === family && last?.family === family
    ? [{ first: first.value, last: last.value }]
    : [];
}
