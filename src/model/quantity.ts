// SPDX-License-Identifier: Apache-2.0
// Quantities in Kubernetes notation ("500m", "1.5Gi", "1e3"), exact to 10⁻⁹, the finest unit that Kubernetes
// keeps. Accepted input, rounding, capping and canonical text follow its resource.ParseQuantity, with two
// exceptions: an exponent beyond ±1000 is refused (Kubernetes wraps or hangs), and an amount too large for the
// largest suffix keeps that suffix ("1000E"; Kubernetes drops it and writes "1").

import { accepted, type Parsed, refused } from './parsed.ts';

export type QuantityFormat = 'BinarySI' | 'DecimalSI' | 'DecimalExponent';

export interface Quantity {
  /** The amount times 10⁹. */
  readonly nano: bigint;
  /** The notation in which it was parsed. It is formatted in the same notation. */
  readonly format: QuantityFormat;
}

interface Suffix {
  readonly format: QuantityFormat;
  /** A power of two for BinarySI, otherwise of ten. */
  readonly exponent: number;
  /** One unit times 10⁹, of the suffixes with a name: computing it each time takes longer than the rest. */
  readonly nano?: bigint;
}

const NANO = 10n ** 9n;
const MILLI_IN_NANO = 10n ** 6n;
const MAX_BINARY = (2n ** 63n - 1n) * NANO;
const MAX_EXPONENT = 1000;

const DECIMAL_SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'] as const;
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const;

const SUFFIXES: ReadonlyMap<string, Suffix> = new Map<string, Suffix>([
  ...BINARY_SUFFIXES.map((text, i): [string, Suffix] => [
    text,
    { format: 'BinarySI', exponent: i * 10, nano: 2n ** BigInt(i * 10) * NANO },
  ]),
  ...DECIMAL_SUFFIXES.map((text, i): [string, Suffix] => [
    text,
    { format: 'DecimalSI', exponent: i * 3 - 9, nano: 10n ** BigInt(i * 3) },
  ]),
]);

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
  if (Math.abs(Number(exponent)) > MAX_EXPONENT) {
    return refused(`exponent ${exponent} is outside ±${MAX_EXPONENT}`);
  }
  return accepted({ format: 'DecimalExponent', exponent: Number(exponent) });
}

/** Explains text that is not a valid suffix, such as "GB", " Gi" or ",5Gi". */
function suffixProblem(text: string): string {
  if (/\s/.test(text)) return 'quantity contains white space';
  if (text.startsWith(',')) return "quantity contains ','; the decimal separator is '.'";
  if (/^[A-Za-zµ]+$/.test(text)) return `unknown suffix '${text}'${suggestion(text)}`;
  return `quantity must be a number with an optional suffix such as m, k, M, G, Ki, Mi or Gi`;
}

function suggestion(text: string): string {
  if (/^b(ytes?)?$/i.test(text)) return '; bytes are written without a suffix';
  if (/^(c|cpus?|v?cores?)$/i.test(text)) return '; cores are written without a suffix';
  const [, letter, binary] = /^([kmgtpe])(i?)b?$/i.exec(text) ?? [];
  if (letter === undefined) return '; suffixes are n u m k M G T P E and Ki Mi Gi Ti Pi Ei';
  const base2 = `'${letter.toUpperCase()}i'`;
  return binary === ''
    ? `; did you mean '${decimal(letter)}' or ${base2}?`
    : `; did you mean ${base2}?`;
}

function decimal(letter: string): string {
  const upper = letter.toUpperCase();
  return upper === 'K' ? 'k' : upper;
}

// Kubernetes parses "m", "." and even "-" as zero, except on its slower code path.
function mayLackDigits(suffix: Suffix): boolean {
  return suffix.format === 'BinarySI' ? suffix.exponent < 50 : suffix.exponent >= -9;
}

function magnitude(digits: bigint, decimals: number, suffix: Suffix): bigint {
  if (suffix.format === 'BinarySI') {
    const exact = digits * (suffix.nano ?? 2n ** BigInt(suffix.exponent) * NANO);
    const nano = decimals === 0 ? exact : divideAwayFromZero(exact, 10n ** BigInt(decimals));
    return nano > MAX_BINARY ? MAX_BINARY : nano;
  }
  if (decimals === 0 && suffix.nano !== undefined) return digits * suffix.nano;
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

/** The canonical text: no fraction, and the largest suffix that leaves an integer. */
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

// Binary amounts below 1024, or with a fraction, are formatted in decimal.
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

/** Thousandths, rounded away from zero: the unit of CPU. */
export function milliValue(quantity: Quantity): bigint {
  return divideAwayFromZero(quantity.nano, MILLI_IN_NANO);
}

/** Units, rounded away from zero: the unit of bytes, pods and devices. */
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

/** For people, with one decimal ("1.5 GiB"). Cannot be parsed back. */
export function humanBytes(bytes: number): string {
  const steps = Math.floor(Math.log2(Math.max(Math.abs(bytes), 1)) / 10);
  const step = Math.min(steps, BINARY_SUFFIXES.length - 1);
  const rounded = Math.round((bytes / 1024 ** step) * 10) / 10;
  return `${rounded} ${BINARY_SUFFIXES[step]}B`;
}
