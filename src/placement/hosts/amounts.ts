// SPDX-License-Identifier: Apache-2.0
// Exact products and readable amounts.

const FACTOR_UNIT = 1_000_000;
const GIB = 2 ** 30;
const MIB = 2 ** 20;

/**
 * `value` × `factor`, rounded down, without the error of floating point: the factor counts to six decimals.
 * 1.15 × 100 is 114.99… in floating point, and a machine would be refused for it.
 */
export function timesFactor(value: number, factor: number): number {
  const scaled = BigInt(Math.round(factor * FACTOR_UNIT));
  return Number((BigInt(value) * scaled) / BigInt(FACTOR_UNIT));
}

/** What there is, rounded down: never shown as more than it is. */
export function bytesFree(bytes: number): string {
  return text(Math.max(bytes, 0), Math.floor);
}

/** What is needed, rounded up: so that need and room never read the same where one does not fit the other. */
export function bytesNeeded(bytes: number): string {
  return text(bytes, Math.ceil);
}

function text(bytes: number, round: (value: number) => number): string {
  const [unit, name] = bytes >= GIB ? [GIB, 'GiB'] : [MIB, 'MiB'];
  return `${round((bytes * 10) / unit) / 10} ${name}`;
}

/** How many times `need` goes into `free`. */
export function timesInto(free: number, need: number): number {
  if (free < 0) return 0;
  return need === 0 ? Number.POSITIVE_INFINITY : (free - (free % need)) / need;
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
