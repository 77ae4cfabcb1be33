// SPDX-License-Identifier: Apache-2.0
// Amounts as Kubernetes writes them ("500m", "1.5Gi", "1e3"), exact to the nano, which is the finest
// Kubernetes keeps. Acceptance, rounding, capping and canonical text follow its resource.ParseQuantity.
// Two departures: an exponent beyond ±1000 is refused (Kubernetes wraps or hangs), and an amount too large
// for the largest suffix keeps that suffix ("1000E"; Kubernetes drops it and writes "1").

import { accepted, type Parsed, refused } from './parsed.ts';
import { suffixProblem } from './quantity-suffix-hint.ts';

export type QuantityFormat = 'BinarySI' | 'DecimalSI' | 'DecimalExponent';

export interface Quantity {
  /** The amount times 10⁹. */
  readonly nano: bigint;
  /** How it was written, which decides how it is written again. */
  readonly format: QuantityFormat;
}

interface Suffix {
  readonly format: QuantityFormat;
  /** Of two for BinarySI, else of ten. */
  readonly exponent: number;
}

const NANO = 10n ** 9n;
const MILLI_IN_NANO = 10n ** 6n;
const LARGEST_BINARY = (2n ** 63n - 1n) * NANO;
const LARGEST_EXPONENT = 1000;

const DECIMAL_SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'] as const;
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const;

const SUFFIXES: ReadonlyMap<string, Suffix> = new Map<string, Suffix>([
  ...BINARY_SUFFIXES.map((text, i) => [text, { format: 'BinarySI', exponent: i * 10 }] as const),
  ...DECIMAL_SUFFIXES.map(
    (text, i) => [text, { format: 'DecimalSI', exponent: i * 3 - 9 }] as const,
  ),
]);

export const ZERO_QUANTITY: Quantity = { nano: 0n, format: 'DecimalSI' };

export function parseQuantity(text: string): Parsed<Quantity> {
  if (text === '') return refused('quantity is empty');
  const [, sign, whole = '', fraction = '', rest = ''] =
    /^([+-]?)(\d*)(?:\.(\d*))?(.*)$/s.exec(text) ?? [];
  const suffix = readSuffix(rest);
  if (!suffix.ok) return suffix;
  const digits = whole + fraction;
  if (digits === '' && !mayLackDigits(suffix.value)) return refused('quantity has no digits');
  const size = magnitude(BigInt(digits), fraction.length, suffix.value);
  const format = keptFormat(size, suffix.value.format);
  return accepted({ nano: sign === '-' ? -size : size, format });
}

function readSuffix(text: string): Parsed<Suffix> {
  const known = SUFFIXES.get(text);
  if (known !== undefined) return accepted(known);
  const exponent = /^[eE]([+-]?\d+)$/.exec(text)?.[1];
  if (exponent === undefined) return refused(suffixProblem(text));
  if (Math.abs(Number(exponent)) > LARGEST_EXPONENT) {
    return refused(`exponent ${exponent} is beyond ±${LARGEST_EXPONENT}`);
  }
  return accepted({ format: 'DecimalExponent', exponent: Number(exponent) });
}

// Kubernetes reads "m", "." and even "-" as zero, except where its slower way of reading is taken.
function mayLackDigits(suffix: Suffix): boolean {
  return suffix.format === 'BinarySI' ? suffix.exponent < 50 : suffix.exponent >= -9;
}

function magnitude(digits: bigint, decimals: number, suffix: Suffix): bigint {
  if (suffix.format === 'BinarySI') {
    const exact = digits * 2n ** BigInt(suffix.exponent) * NANO;
    const nano = divideAwayFromZero(exact, 10n ** BigInt(decimals));
    return nano > LARGEST_BINARY ? LARGEST_BINARY : nano;
  }
  const power = suffix.exponent - decimals + 9;
  return power >= 0
    ? digits * 10n ** BigInt(power)
    : divideAwayFromZero(digits, 10n ** BigInt(-power));
}

function keptFormat(size: bigint, format: QuantityFormat): QuantityFormat {
  return format === 'BinarySI' && size > 0n && size < NANO ? 'DecimalSI' : format;
}

function divideAwayFromZero(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  if (quotient * divisor === dividend) return quotient;
  return dividend > 0n ? quotient + 1n : quotient - 1n;
}

/** The canonical text: no fraction, the largest suffix that leaves an integer. */
export function formatQuantity(quantity: Quantity): string {
  const { nano, format } = quantity;
  if (nano === 0n) return '0';
  if (format === 'BinarySI' && isBinaryExact(nano)) {
    const { rest, times } = factorOut(nano / NANO, 1024n, BINARY_SUFFIXES.length - 1);
    return `${rest}${BINARY_SUFFIXES[times]}`;
  }
  if (format === 'DecimalExponent') {
    const { rest, times } = factorOut(nano, 1000n, Number.POSITIVE_INFINITY);
    return times === 3 ? `${rest}` : `${rest}e${times * 3 - 9}`;
  }
  const { rest, times } = factorOut(nano, 1000n, DECIMAL_SUFFIXES.length - 1);
  return `${rest}${DECIMAL_SUFFIXES[times]}`;
}

// Below 1024, and where a fraction would be lost, binary amounts are written in decimal.
function isBinaryExact(nano: bigint): boolean {
  const size = nano < 0n ? -nano : nano;
  return size >= 1024n * NANO && size % NANO === 0n;
}

function factorOut(
  amount: bigint,
  factor: bigint,
  limit: number,
): { readonly rest: bigint; readonly times: number } {
  let rest = amount;
  let times = 0;
  while (times < limit && rest % factor === 0n) {
    rest /= factor;
    times += 1;
  }
  return { rest, times };
}

export function compareQuantities(left: Quantity, right: Quantity): -1 | 0 | 1 {
  if (left.nano === right.nano) return 0;
  return left.nano < right.nano ? -1 : 1;
}

/** Keeps the left one's format; a zero takes over the right one's. */
export function addQuantities(left: Quantity, right: Quantity): Quantity {
  return { nano: left.nano + right.nano, format: resultFormat(left, right) };
}

export function subtractQuantities(left: Quantity, right: Quantity): Quantity {
  return { nano: left.nano - right.nano, format: resultFormat(left, right) };
}

function resultFormat(left: Quantity, right: Quantity): QuantityFormat {
  return left.nano === 0n ? right.format : left.format;
}

/** Thousandths, rounded up (away from zero): how CPU is counted. */
export function milliValue(quantity: Quantity): bigint {
  return divideAwayFromZero(quantity.nano, MILLI_IN_NANO);
}

/** Units, rounded up (away from zero): how bytes, pods and devices are counted. */
export function wholeValue(quantity: Quantity): bigint {
  return divideAwayFromZero(quantity.nano, NANO);
}

export function quantityFromBytes(bytes: bigint | number): Quantity {
  return { nano: BigInt(bytes) * NANO, format: 'BinarySI' };
}

export function quantityFromMilli(milli: bigint | number): Quantity {
  return { nano: BigInt(milli) * MILLI_IN_NANO, format: 'DecimalSI' };
}

export function quantityFromCount(count: bigint | number): Quantity {
  return { nano: BigInt(count) * NANO, format: 'DecimalSI' };
}

/** For people, to one decimal ("1.5 GiB"); not for parsing back. */
export function humanBytes(bytes: number): string {
  const steps = Math.floor(Math.log2(Math.max(Math.abs(bytes), 1)) / 10);
  const step = Math.min(steps, BINARY_SUFFIXES.length - 1);
  const rounded = Math.round((bytes / 1024 ** step) * 10) / 10;
  return `${rounded} ${BINARY_SUFFIXES[step]}B`;
}
