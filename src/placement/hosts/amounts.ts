// SPDX-License-Identifier: Apache-2.0
// Exact multiplication and formatting of amounts.

const FACTOR_UNIT = 1_000_000;
const GIB = 2 ** 30;
const MIB = 2 ** 20;

/**
 * `value` × `factor`, rounded down, without floating point error; the factor is precise to six decimals. In
 * floating point 1.15 × 100 is 114.99…, and a machine that fits would be refused.
 */
export function multiplyExact(value: number, factor: number): number {
  const scaled = BigInt(Math.round(factor * FACTOR_UNIT));
  return Number((BigInt(value) * scaled) / BigInt(FACTOR_UNIT));
}

/** Available bytes, rounded down, so that the text never shows more than there is. */
export function formatFreeBytes(bytes: number): string {
  return formatBinary(Math.max(bytes, 0), Math.floor);
}

/** Needed bytes, rounded up, so that needed and free never show the same text when they do not fit. */
export function formatNeededBytes(bytes: number): string {
  return formatBinary(bytes, Math.ceil);
}

function formatBinary(bytes: number, round: (value: number) => number): string {
  const [unit, name] = bytes >= GIB ? [GIB, 'GiB'] : [MIB, 'MiB'];
  return `${round((bytes * 10) / unit) / 10} ${name}`;
}

/** How many times `need` fits into `free`. */
export function countFits(free: number, need: number): number {
  if (free < 0) return 0;
  return need === 0 ? Number.POSITIVE_INFINITY : (free - (free % need)) / need;
}

export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
